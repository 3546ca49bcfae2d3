import { fenced, type ParsedDocument, SectionBuilder, unreadable } from '../document.js';
import { type Line, type OutlineEntry, readPdf } from './pdf-lines.js';

/** A line is a heading if its size is at least this multiple of the body text's size. */
const LARGER = 1.12;
const HEADING_CHARS_MAX = 200;
const NUMBERED = /^(?:(?:chapter|part|section|appendix)\s+[\dA-Z]+\b|\d{1,2}(?:\.\d{1,3}){0,4}\.?\s+\p{Lu})/iu;
/** A gap of more than this multiple of the usual line distance begins a paragraph. */
const PARAGRAPH_GAP = 1.3;
const BULLET = /^(?:[•‣◦▪●○■–*]\s|\(?(?:\d{1,2}|[a-z])[.)]\s)/;
const SENTENCE_END = /[.!?:。！？]["'”’)\]]*$/;

/**
 * Parses a PDF's text in the order in which it is drawn. Headings are the lines that the outline names, then lines that are larger
 * than the others, or numbered in another font. Running headers and page numbers are left out.
 *
 * @throws EtudeError INVALID_ARGUMENT for a PDF that is broken or encrypted, or holds only pictures
 */
export async function parsePdf(bytes: Uint8Array, name: string): Promise<ParsedDocument> {
  const { title, pages, outline } = await readPdf(bytes, name);
  const body = bodyOf(pages.flat());
  const lines = withoutFurniture(pages, body);
  if (lines.length === 0) throw unreadable(name, `has ${pages.length} pages without any text; run text recognition (OCR) first`);
  const levels = levelsOf(lines, body, outline);
  const leading = leadingOf(lines);
  const words = new Set(lines.flatMap(({ text }) => text.toLowerCase().match(/[\p{L}\p{N}-]+(?=[^\p{L}\p{N}-])/gu) ?? []));
  const builder = new SectionBuilder(name);
  for (const group of groupsOf(lines, levels, leading)) {
    const [first] = group as [Line];
    const level = levels.get(first);
    if (level !== undefined) builder.heading(level, joined(group, words), first.page);
    else builder.block(first.monospace ? codeOf(group) : joined(group, words), first.page);
  }
  return builder.build(title);
}

/** The size and font that most characters of a document have. */
function bodyOf(lines: readonly Line[]): { readonly size: number; readonly font: string } {
  const chars = new Map<string, { size: number; font: string; chars: number }>();
  for (const { size, font, text } of lines) {
    const look = chars.get(`${size} ${font}`) ?? { size, font, chars: 0 };
    chars.set(`${size} ${font}`, { ...look, chars: look.chars + text.length });
  }
  return [...chars.values()].toSorted((a, b) => b.chars - a.chars)[0] ?? { size: 0, font: '' };
}

const wordsOf = ({ text }: Line) => text.toLowerCase().replaceAll(/\d+|\b[ivxlc]+\b/g, '#');

/** Drops running headers and footers: lines that repeat at the edge of several pages, apart from digits such as page numbers. */
function withoutFurniture(pages: ReadonlyArray<readonly Line[]>, body: { readonly size: number }): Line[] {
  // Larger lines at an edge are headings, so they stay.
  const edges = pages.flat().filter(({ atEdge, size }) => atEdge && size < body.size * LARGER);
  const groups = [...Map.groupBy(edges, wordsOf).values()];
  const repeated = groups.filter((lines) => new Set(lines.map(({ page }) => page)).size >= Math.max(2, pages.length / 5));
  const dropped = new Set(repeated.flat());
  return pages.flat().filter((line) => !dropped.has(line));
}

/** Levels of headings: the outline's levels come first, and below them the levels by size and font. */
function levelsOf(lines: readonly Line[], body: ReturnType<typeof bodyOf>, outline: readonly OutlineEntry[]): Map<Line, number> {
  const named = levelsByOutline(lines, outline);
  const depth = Math.max(0, ...named.values());
  return new Map([...[...levelsByLook(lines, body)].map(([line, level]) => [line, depth + level] as const), ...named]);
}

const HEADING_LINES_MAX = 3;
const bare = (text: string) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '');
/** A number in front of a title, without punctuation, as in "Chapter 12" or "3.1.4". */
const NUMBER = /^(?:(?:chapter|part|section|appendix)(?:\d+|[ivxlc]+|[a-z])|[a-z]?\d+)?$/iu;

/** Finds the lines that show the title of an outline entry, perhaps after a number. Of several titles on the entry's page, the largest counts. */
function levelsByOutline(lines: readonly Line[], outline: readonly OutlineEntry[]): Map<Line, number> {
  const onPage = Map.groupBy(lines, ({ page }) => page);
  return new Map(
    outline.flatMap(({ title, level, page }) => {
      const own = onPage.get(page) ?? [];
      const found = own.map((_, at) => titleAt(own.slice(at, at + HEADING_LINES_MAX), bare(title)));
      const [largest = []] = found.filter(({ length }) => length > 0).toSorted((a, b) => b[0]!.size - a[0]!.size);
      return largest.map((line) => [line, level] as const);
    }),
  );
}

function titleAt(lines: readonly Line[], title: string): readonly Line[] {
  for (let count = 1; count <= lines.length; count++) {
    const text = bare(
      lines
        .slice(0, count)
        .map((line) => line.text)
        .join(' '),
    );
    if (text.endsWith(title) && title !== '' && NUMBER.test(text.slice(0, text.length - title.length))) return lines.slice(0, count);
  }
  return [];
}

function levelsByLook(lines: readonly Line[], body: { readonly size: number; readonly font: string }): Map<Line, number> {
  const headings = lines.filter(({ text, size, font, monospace }) => {
    if (monospace || text.length > HEADING_CHARS_MAX || !/\p{L}/u.test(text) || text.includes(' … ')) return false;
    return size >= body.size * LARGER || (size >= body.size && font !== body.font && NUMBERED.test(text) && !/[.,;:!?]$/.test(text));
  });
  const sizes = [...new Set(headings.map(({ size }) => size))].toSorted((a, b) => b - a);
  return new Map(headings.map((line) => [line, sizes.indexOf(line.size) + 1]));
}

/** The usual distance between two lines, in points. */
function leadingOf(lines: readonly Line[]): number {
  const gaps = lines.map((line, i) => line.y - (lines[i - 1]?.y ?? line.y)).filter((gap) => gap > 0);
  return gaps.toSorted((a, b) => a - b)[gaps.length >> 2] ?? 12;
}

function groupsOf(lines: readonly Line[], levels: ReadonlyMap<Line, number>, leading: number): Line[][] {
  const groups: Line[][] = [];
  for (const [i, line] of lines.entries()) {
    const before = lines[i - 1];
    const goesOn = before !== undefined && levels.get(before) === levels.get(line) && isNext(before, line, levels.has(line), leading);
    if (goesOn) groups.at(-1)?.push(line);
    else groups.push([line]);
  }
  return groups;
}

function isNext(before: Line, line: Line, isHeading: boolean, leading: number): boolean {
  if (line.monospace !== before.monospace) return false;
  const gap = line.y - before.y;
  if (isHeading) return gap > 0 && gap < line.size * 1.6 && !NUMBERED.test(line.text);
  if (line.monospace) return line.page !== before.page || gap < leading * 2.6;
  if (BULLET.test(line.text)) return false;
  // The line begins a new column or page.
  if (line.page !== before.page || gap < 0) return !SENTENCE_END.test(before.text) && /^[\p{Ll}\p{N}("']/u.test(line.text);
  return gap <= Math.max(leading, line.size) * PARAGRAPH_GAP;
}

/** Joins lines of prose. A hyphen at the end of a line stays if the hyphenated word occurs elsewhere within a line. */
function joined(lines: readonly Line[], words: ReadonlySet<string>): string {
  return lines.reduce((text, { text: next }) => {
    if (text === '') return next;
    const first = /([\p{L}\p{N}-]*\p{L})[-‐\u00ad]$/u.exec(text)?.[1];
    const second = /^\p{Ll}[\p{L}\p{N}]*/u.exec(next)?.[0];
    if (first === undefined || second === undefined) return `${text} ${next}`;
    return (words.has(`${first}-${second}`.toLowerCase()) ? text : text.slice(0, -1)) + next;
  }, '');
}

function codeOf(lines: readonly Line[]): string {
  const left = Math.min(...lines.map(({ x }) => x));
  const rows = lines.map(({ text, x, width }) => {
    const indent = Math.round((x - left) / (width / text.length || 6));
    return `${' '.repeat(Math.min(80, Math.max(0, indent)))}${text}`;
  });
  return fenced(rows.join('\n'), '');
}
