import type { ParsedDocument } from '../document.js';
import { type ParseContext, unreadable } from '../parse-limits.js';
import { SectionBuilder } from '../section-builder.js';
import { headingLevels } from './find-headings.js';
import { blocksOf, joinedAt, vocabularyOf } from './join-lines.js';
import { withoutFurniture } from './page-furniture.js';
import { type Line, linesOf } from './page-lines.js';
import { readPdf } from './read-pages.js';

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
