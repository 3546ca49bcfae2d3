import { getDocumentProxy, getResolvedPDFJS } from 'unpdf';
import type { ParsedDocument } from '../document.js';
import { type ParseContext, tooLarge, unreadable } from '../parse-limits.js';
import { cleanText } from '../parse-text.js';
import { SectionBuilder } from '../section-builder.js';
import { type Line, linesOf } from './page-lines.js';
import { blocksOf, headingLevels, joinedAt, vocabularyOf, withoutFurniture } from './page-structure.js';

interface Heading {
  readonly level: number;
  readonly lines: Line[];
}

/**
 * A PDF's text in reading order, with its headings. A PDF knows only where each piece of text stands: columns are told from
 * empty stripes, headings from the outline, sizes and fonts, running headers from what stands on several pages.
 *
 * @throws EtudeError INVALID_ARGUMENT for what is broken, encrypted, or holds only pictures
 */
export async function parsePdf(bytes: Uint8Array, context: ParseContext): Promise<ParsedDocument> {
  const { title, outline, pages } = await readPdf(bytes, context);
  const lines = withoutFurniture(pages.map((page) => ({ height: page.height, lines: linesOf(page) }))).flat();
  if (lines.length === 0) {
    throw unreadable(context.name, `has ${pages.length} pages without any text, pictures perhaps; recognise its text (OCR) first`);
  }
  const levels = headingLevels(lines, outline);
  const words = vocabularyOf(lines);
  const builder = new SectionBuilder(context);
  for (const part of partsOf(lines, levels)) {
    if ('level' in part) builder.heading(part.level, headingText(part.lines, words), part.lines[0]?.page ?? null);
    else for (const block of blocksOf(part.body, words)) builder.block(block.text, block.page);
  }
  return builder.build(title);
}

const headingText = (lines: readonly Line[], words: ReadonlySet<string>) =>
  lines.reduce((text, line) => (text === '' ? line.text : joinedAt(text, line.text, words)), '');

function partsOf(lines: readonly Line[], levels: ReadonlyMap<Line, number>): Array<Heading | { readonly body: Line[] }> {
  const parts: Array<Heading | { readonly body: Line[] }> = [];
  for (const line of lines) {
    const level = levels.get(line);
    const last = parts.at(-1);
    if (level === undefined) {
      if (last && 'body' in last) last.body.push(line);
      else parts.push({ body: [line] });
    } else if (last && 'level' in last && goesOn(last, line)) last.lines.push(line);
    else parts.push({ level, lines: [line] });
  }
  return parts;
}

/** A heading of several lines: of one look, close together. */
function goesOn({ lines }: Heading, line: Line): boolean {
  const before = lines.at(-1);
  if (!before || before.column !== line.column || before.size !== line.size || before.font !== line.font) return false;
  return line.y - before.y < line.size * 1.6 && !/^\d+(?:\.\d+)*\s/.test(line.text);
}

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;
type PdfPage = Awaited<ReturnType<Pdf['getPage']>>;

/** A piece of text as the PDF places it; x to the right, y down from the top of the page, in points. */
export interface Glyphs {
  readonly text: string;
  readonly x: number;
  readonly right: number;
  /** Of the baseline. */
  readonly y: number;
  readonly size: number;
  readonly font: string;
  readonly monospace: boolean;
}

export interface PdfPageText {
  /** From 1. */
  readonly page: number;
  readonly height: number;
  readonly glyphs: readonly Glyphs[];
}

/** An entry of the PDF's own table of contents; level from 1. */
export interface OutlineEntry {
  readonly title: string;
  readonly level: number;
}

export interface PdfText {
  readonly title: string | null;
  readonly outline: readonly OutlineEntry[];
  readonly pages: readonly PdfPageText[];
}

const OUTLINE_ENTRIES_MAX = 10_000;

/** Nothing in a PDF is run: its scripts, actions, forms and embedded files are not looked at. */
export async function readPdf(bytes: Uint8Array, context: ParseContext): Promise<PdfText> {
  const pdf = await open(bytes, context);
  try {
    if (pdf.numPages > context.limits.pagesMax) {
      throw tooLarge(context.name, `has ${pdf.numPages} pages; at most ${context.limits.pagesMax} are read`, 'split it into several files');
    }
    const pages: PdfPageText[] = [];
    let left = context.limits.charsMax;
    for (let number = 1; number <= pdf.numPages; number++) {
      context.signal.throwIfAborted();
      const read = await readPage(await pdf.getPage(number), number);
      pages.push(read);
      left -= read.glyphs.reduce((sum, { text }) => sum + text.length, 0);
      if (left < 0) throw tooLarge(context.name, `holds more than ${context.limits.charsMax} characters`, 'split it into several files');
    }
    return { title: await titleOf(pdf), outline: await outlineOf(pdf), pages };
  } finally {
    await pdf.cleanup();
  }
}

async function open(bytes: Uint8Array, { name }: ParseContext): Promise<Pdf> {
  const { VerbosityLevel } = await getResolvedPDFJS();
  try {
    // The parser keeps the bytes it is given, so it is given its own.
    return await getDocumentProxy(bytes.slice(), {
      verbosity: VerbosityLevel.ERRORS,
      enableXfa: false,
      stopAtErrors: false,
      useSystemFonts: false,
      disableFontFace: true,
      maxImageSize: 0,
    });
  } catch (error) {
    if ((error as Error).name === 'PasswordException') {
      throw unreadable(name, 'is encrypted; save it without a password and hand that in', error);
    }
    throw unreadable(name, `is no PDF that can be read: ${(error as Error).message}`, error);
  }
}

async function readPage(page: PdfPage, number: number): Promise<PdfPageText> {
  const viewport = page.getViewport({ scale: 1 });
  const content = await page.getTextContent({ includeMarkedContent: false });
  const glyphs: Glyphs[] = [];
  for (const item of content.items) {
    if (!('str' in item) || item.str.trim() === '') continue;
    const [a, b, c, d, x, y] = product(viewport.transform, item.transform);
    // Written upwards or slanted: watermarks and marks of the archive, not the text.
    if (Math.abs(b) > Math.abs(a) * 0.2) continue;
    const font = item.fontName;
    const size = Math.hypot(c, d);
    if (size === 0 || ![x, y, size].every(Number.isFinite)) continue;
    const monospace = content.styles[font]?.fontFamily === 'monospace';
    glyphs.push({ text: cleanText(item.str), x, right: x + item.width, y, size, font, monospace });
  }
  page.cleanup();
  return { page: number, height: viewport.height, glyphs };
}

/** Of two affine matrices as PDF writes them. */
function product(m: readonly number[], n: readonly number[]): [number, number, number, number, number, number] {
  const [ma = 1, mb = 0, mc = 0, md = 1, me = 0, mf = 0] = m;
  const [na = 1, nb = 0, nc = 0, nd = 1, ne = 0, nf = 0] = n;
  return [ma * na + mc * nb, mb * na + md * nb, ma * nc + mc * nd, mb * nc + md * nd, ma * ne + mc * nf + me, mb * ne + md * nf + mf];
}

async function titleOf(pdf: Pdf): Promise<string | null> {
  const { info } = await pdf.getMetadata();
  const title = (info as { Title?: unknown }).Title;
  // What word processors write of themselves.
  if (typeof title !== 'string' || /^(?:untitled|microsoft word\b.*|.*\.(?:docx?|tex|dvi|indd))$/i.test(title.trim())) return null;
  return title.trim() || null;
}

interface OutlineNode {
  readonly title: string;
  readonly items?: readonly OutlineNode[];
}

async function outlineOf(pdf: Pdf): Promise<OutlineEntry[]> {
  const entries: OutlineEntry[] = [];
  const rest: Array<{ node: OutlineNode; level: number }> = [];
  const push = (nodes: readonly OutlineNode[], level: number) => {
    for (const node of nodes.toReversed()) rest.push({ node, level });
  };
  push((await pdf.getOutline()) ?? [], 1);
  for (let next = rest.pop(); next && entries.length < OUTLINE_ENTRIES_MAX; next = rest.pop()) {
    entries.push({ title: next.node.title, level: next.level });
    push(next.node.items ?? [], next.level + 1);
  }
  return entries;
}
