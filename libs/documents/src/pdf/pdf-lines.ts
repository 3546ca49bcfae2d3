import { getDocumentProxy, getResolvedPDFJS } from 'unpdf';
import { cleanText, PARSE_LIMITS, tooLarge, unreadable } from '../document.js';

/** A line of text in a PDF. `x` counts from the left, `y` down from the top of the page, in points. */
export interface Line {
  readonly text: string;
  /** Counted from 1. */
  readonly page: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly size: number;
  readonly font: string;
  readonly monospace: boolean;
  /** Whether the line is in the top or the bottom tenth of its page. */
  readonly atEdge: boolean;
}

interface PdfText {
  readonly title: string | null;
  readonly pages: ReadonlyArray<readonly Line[]>;
  readonly outline: readonly OutlineEntry[];
}

type PdfJs = Awaited<ReturnType<typeof getResolvedPDFJS>>;
type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;
type PdfPage = Awaited<ReturnType<Pdf['getPage']>>;
type Item = Awaited<ReturnType<Pdf['getOutline']>>[number];

/** Reads title, outline and lines of a PDF. Its scripts, actions, forms and embedded files are ignored. */
export async function readPdf(bytes: Uint8Array, name: string): Promise<PdfText> {
  const pdfJs = await getResolvedPDFJS();
  const pdf = await open(bytes, name, pdfJs);
  const { pagesMax } = PARSE_LIMITS;
  if (pdf.numPages > pagesMax)
    throw tooLarge(name, `has ${pdf.numPages} pages; at most ${pagesMax} are read`, 'split it into several files');
  const pages: Line[][] = [];
  for (let number = 1; number <= pdf.numPages; number++) {
    pages.push(await linesOf(await pdf.getPage(number), number, pdfJs));
  }
  return { title: await titleOf(pdf), pages, outline: await outlineOf(pdf) };
}

async function open(bytes: Uint8Array, name: string, { VerbosityLevel }: PdfJs): Promise<Pdf> {
  try {
    // The parser takes ownership of the bytes, so it gets a copy. It also refuses a Buffer.
    const options = { enableXfa: false, stopAtErrors: false, useSystemFonts: false, disableFontFace: true, maxImageSize: 0 };
    return await getDocumentProxy(new Uint8Array(bytes), { verbosity: VerbosityLevel.ERRORS, ...options });
  } catch (error) {
    if ((error as Error).name === 'PasswordException') throw unreadable(name, 'is encrypted; save it without a password', error);
    throw unreadable(name, `cannot be read as a PDF: ${(error as Error).message}`, error);
  }
}

async function linesOf(page: PdfPage, number: number, { Util }: PdfJs): Promise<Line[]> {
  const viewport = page.getViewport({ scale: 1 });
  const { items, styles } = await page.getTextContent({ includeMarkedContent: false });
  const lines: Line[] = [];
  let isOpen = false;
  for (const item of items) {
    if (!('str' in item)) continue;
    const [a, b, c, d, x, y] = Util.transform(viewport.transform, item.transform) as [number, number, number, number, number, number];
    const size = Math.round(2 * Math.hypot(c, d)) / 2;
    // Skips vertical and slanted text, which is a watermark or a stamp.
    if (Math.abs(b) <= Math.abs(a) * 0.2 && item.str !== '' && [x, y, size].every(Number.isFinite)) {
      const text = cleanText(item.str);
      const before = isOpen ? lines.pop() : undefined;
      const look = { size, font: item.fontName, monospace: styles[item.fontName]?.fontFamily === 'monospace' };
      const atEdge = y < viewport.height * 0.1 || y > viewport.height * 0.9;
      if (before === undefined) lines.push({ text, page: number, x, y, width: item.width, atEdge, ...look });
      // A line has the size and font of its longest piece.
      else
        lines.push({
          ...before,
          ...(text.length > before.text.length ? look : {}),
          text: before.text + text,
          width: x + item.width - before.x,
        });
      isOpen = true;
    }
    if (item.hasEOL) isOpen = false;
  }
  page.cleanup();
  // Shortens rows of dots, as in a table of contents.
  return lines.map((line) => ({ ...line, text: line.text.replaceAll(/(?: ?\. ?){5,}/g, ' … ').trim() })).filter(({ text }) => text !== '');
}

async function titleOf(pdf: Pdf): Promise<string | null> {
  const { info } = await pdf.getMetadata();
  const title = (info as { Title?: unknown }).Title;
  // Word processors set these titles by default.
  if (typeof title !== 'string' || /^(?:untitled|microsoft word\b.*|.*\.(?:docx?|tex|dvi|indd))$/i.test(title.trim())) return null;
  return title.trim() || null;
}

export interface OutlineEntry {
  readonly title: string;
  /** Counted from 1, the outermost. */
  readonly level: number;
  /** Counted from 1. */
  readonly page: number;
}

const ENTRIES_MAX = 5_000;

async function outlineOf(pdf: Pdf): Promise<readonly OutlineEntry[]> {
  const entries: OutlineEntry[] = [];
  const left = await pdf.getOutline().then((items) => placed(items ?? [], 1));
  for (let next = left.shift(); next !== undefined && entries.length < ENTRIES_MAX; next = left.shift()) {
    const { item, level } = next;
    const page = await pageOf(item, pdf);
    if (page !== null) entries.push({ title: item.title, level, page });
    left.unshift(...placed(item.items as Item[], level + 1));
  }
  return entries;
}

const placed = (items: readonly Item[], level: number) => items.map((item) => ({ item, level }));

/** null where the entry leads to no page of this document: outlines are often damaged when a PDF is cut or joined. */
async function pageOf({ dest }: Item, pdf: Pdf): Promise<number | null> {
  const place: unknown = typeof dest === 'string' ? await pdf.getDestination(dest).catch(() => null) : dest;
  const [page] = Array.isArray(place) ? (place as unknown[]) : [];
  if (typeof page === 'number') return page + 1;
  if (typeof page !== 'object' || page === null) return null;
  return pdf.getPageIndex(page as Parameters<Pdf['getPageIndex']>[0]).then(
    (index) => index + 1,
    () => null,
  );
}
