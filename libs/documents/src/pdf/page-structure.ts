import { fenced } from '../section-builder.js';
import type { Line } from './page-lines.js';
import type { OutlineEntry } from './parse-pdf.js';

/** A paragraph begins below a gap of this many times the usual distance of lines. */
const PARAGRAPH_GAP = 1.3;
const INDENT_EMS = 0.8;
const BULLET = /^(?:[•‣◦▪●○■–*]\s|\(?(?:\d{1,2}|[a-z])[.)]\s)/;
const SENTENCE_END = /[.!?:。！？]["'”’)\]]*$/;

export interface Block {
  readonly text: string;
  readonly page: number;
}

/** Paragraphs and code of lines that follow each other. `words` are those of the whole document, for hyphens. */
export function blocksOf(lines: readonly Line[], words: ReadonlySet<string>): Block[] {
  const leading = leadingOf(lines);
  const groups: Line[][] = [];
  lines.forEach((line, i) => {
    const before = lines[i - 1];
    if (before && !beginsBlock(line, before, leading)) groups.at(-1)?.push(line);
    else groups.push([line]);
  });
  return groups.map((group) => ({ text: group[0]?.monospace ? codeOf(group) : paragraphOf(group, words), page: group[0]?.page ?? 1 }));
}

/** Words as they stand within lines, to tell a compound's hyphen from one that only ends a line. */
export function vocabularyOf(lines: readonly Line[]): Set<string> {
  return new Set(lines.flatMap(({ text }) => text.toLowerCase().match(/[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*(?=[^\p{L}\p{N}-])/gu) ?? []));
}

function leadingOf(lines: readonly Line[]): number {
  const gaps = lines.flatMap((line, i) => {
    const before = lines[i - 1];
    return before && before.column === line.column && line.y > before.y ? [line.y - before.y] : [];
  });
  const sorted = gaps.toSorted((a, b) => a - b);
  // The lower half: gaps between paragraphs are the larger ones.
  return sorted[sorted.length >> 2] ?? 12;
}

function beginsBlock(line: Line, before: Line, leading: number): boolean {
  if (line.monospace !== before.monospace) return true;
  if (line.column !== before.column) return line.monospace ? false : !goesOn(before, line);
  if (line.y - before.y > Math.max(leading, line.size) * PARAGRAPH_GAP) return !(line.monospace && line.y - before.y < leading * 2.6);
  if (line.monospace) return false;
  if (BULLET.test(line.text)) return true;
  const indented = line.x - before.x > INDENT_EMS * line.size && line.x - before.x < 4 * line.size;
  return indented && SENTENCE_END.test(before.text);
}

/** Over the end of a column or page. */
function goesOn(before: Line, line: Line): boolean {
  return !SENTENCE_END.test(before.text) && !BULLET.test(line.text) && /^[\p{Ll}\p{N}("']/u.test(line.text);
}

function paragraphOf(lines: readonly Line[], words: ReadonlySet<string>): string {
  return lines.reduce((text, line) => (text === '' ? line.text : joinedAt(text, line.text, words)), '');
}

/** Two lines of a paragraph, or of a heading. */
export function joinedAt(text: string, next: string, words: ReadonlySet<string>): string {
  if (text.endsWith('\u00ad')) return text.slice(0, -1) + next;
  const first = /(?<![\p{L}\p{N}])([\p{L}\p{N}-]*\p{L})[-‐]$/u.exec(text)?.[1];
  const second = /^\p{Ll}[\p{L}\p{N}]*/u.exec(next)?.[0];
  if (first === undefined || second === undefined) return /[-‐–/]$/.test(text) && first !== undefined ? text + next : `${text} ${next}`;
  const compound = words.has(`${first}-${second}`.toLowerCase()) && !words.has(`${first}${second}`.toLowerCase());
  return (compound ? text : text.slice(0, -1)) + next;
}

/** Each line by itself, as far in as it was. */
function codeOf(lines: readonly Line[]): string {
  const left = Math.min(...lines.map(({ x }) => x));
  const rows = lines.map(({ text, x, right }) => {
    const charWidth = (right - x) / Math.max(1, text.length);
    return `${' '.repeat(Math.min(80, Math.max(0, Math.round((x - left) / (charWidth || 6)))))}${text}`;
  });
  return fenced(rows.join('\n'), '');
}

const HEADING_CHARS_MAX = 200;
/** A heading is at least this many times as large as the body. */
export const LARGER = 1.12;
const NUMBERED = /^(?:(?:chapter|part|section|appendix|kapitel)\s+[\dA-Z]+\b|\d{1,2}(?:\.\d{1,3}){1,4}\.?\s+\p{L}|\d{1,2}\.?\s+\p{Lu})/iu;

/** What the body of a document is set in: size and font of most of its characters. */
export interface BodyStyle {
  readonly size: number;
  readonly font: string;
}

export function bodyStyleOf(lines: readonly Line[]): BodyStyle {
  const prose = lines.filter(({ monospace }) => !monospace);
  const style = { size: 0, font: '' };
  style.size = Number(heaviest(prose.length > 0 ? prose : lines, ({ size }) => String(size)) ?? 0);
  style.font =
    heaviest(
      lines.filter(({ size }) => size === style.size),
      ({ font }) => font,
    ) ?? '';
  return style;
}

function heaviest(lines: readonly Line[], keyOf: (line: Line) => string): string | undefined {
  const weights = new Map<string, number>();
  for (const line of lines) weights.set(keyOf(line), (weights.get(keyOf(line)) ?? 0) + line.text.length);
  return [...weights].toSorted((a, b) => b[1] - a[1])[0]?.[0];
}

/** Level from 1 of each line that is a heading: by the PDF's own outline where it has one, by size and font otherwise. */
export function headingLevels(lines: readonly Line[], outline: readonly OutlineEntry[]): Map<Line, number> {
  const body = bodyStyleOf(lines);
  const looks = lines.filter((line, i) => looksLikeHeading(line, lines[i - 1], lines[i + 1], body));
  const levels = levelsByOutline(lines, outline, body);
  const depth = Math.max(0, ...levels.values());
  const styles = stylesOf(looks.filter((line) => !levels.has(line)));
  // What is as large as an entry of the outline is at its level.
  const known = new Map([...levels].map(([line, level]) => [styleOf(line), level]));
  for (const line of looks) {
    if (!levels.has(line)) levels.set(line, known.get(styleOf(line)) ?? depth + 1 + styles.indexOf(styleOf(line)));
  }
  return levels;
}

const styleOf = ({ size, font }: Line) => `${String(size).padStart(6, '0')} ${font}`;

/** From the largest down; of one size, in the order they come. */
function stylesOf(lines: readonly Line[]): string[] {
  const styles = [...new Map(lines.map((line) => [styleOf(line), line.size]))];
  return styles.toSorted((a, b) => b[1] - a[1]).map(([style]) => style);
}

function looksLikeHeading(line: Line, before: Line | undefined, after: Line | undefined, body: BodyStyle): boolean {
  if (line.monospace || line.text.length > HEADING_CHARS_MAX || !/\p{L}/u.test(line.text) || line.text.includes(' … ')) return false;
  if (line.size >= body.size * LARGER) return true;
  if (line.size < body.size || line.font === body.font || /[.,;:!?]$/.test(line.text)) return false;
  const alone = (other: Line | undefined) => !other || other.column !== line.column || Math.abs(other.y - line.y) > line.size * 1.5;
  return NUMBERED.test(line.text) && (alone(before) || alone(after));
}

const wordsOnly = (text: string) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '');

/** Entries and lines both come in reading order, so each entry is looked for behind the one before it. */
function levelsByOutline(lines: readonly Line[], outline: readonly OutlineEntry[], body: BodyStyle): Map<Line, number> {
  const levels = new Map<Line, number>();
  const texts = lines.map((line) => (line.size >= body.size && !line.text.includes(' … ') ? wordsOnly(line.text) : ''));
  let from = 0;
  for (const { title, level } of outline) {
    const wanted = wordsOnly(title);
    const at = wanted === '' ? -1 : texts.findIndex((text, i) => i >= from && isTitle(text, wanted));
    const line = lines[at];
    if (!line) continue;
    levels.set(line, level);
    from = at + 1;
  }
  return levels;
}

/** An outline often leaves the number out, and a long title goes on in the next line. */
function isTitle(text: string, wanted: string): boolean {
  if (text === wanted || text.replace(/^(?:chapter|part|section|appendix)?[\divxlc]+/, '') === wanted.replace(/^\d+/, '')) return true;
  return text.length >= 12 && wanted.startsWith(text);
}

export interface PageLines {
  readonly height: number;
  readonly lines: readonly Line[];
}

/** How many lines from the top and the bottom of a page can be running headers and footers. */
const EDGE_LINES = 2;
/** They stand in this share of the page's height at either end. */
const EDGE_SHARE = 0.1;
const SAME_HEIGHT_POINTS = 4;
const PAGE_NUMBER = /^(?:page\s+)?[-–—\s]*(?:\d{1,5}|[ivxlc]{1,7})[-–—\s]*(?:(?:of|\/)\s*\d{1,5})?$/i;

interface Edge {
  readonly line: Line;
  readonly edge: 'top' | 'bottom';
}

/** Pages without their numbers, and without what stands at the same height of several of them. */
export function withoutFurniture(pages: readonly PageLines[]): Line[][] {
  if (pages.length < 2) return pages.map(({ lines }) => [...lines]);
  const body = bodyStyleOf(pages.flatMap(({ lines }) => lines));
  // Larger ones are headings that happen to begin a page.
  const edges = pages.flatMap((page) => edgesOf(page)).filter(({ line }) => line.size < body.size * LARGER);
  const repeated = repeatedOf(edges, pages.length);
  const bands = edges.filter(({ line }) => repeated.has(line)).map(({ line, edge }) => ({ edge, y: line.y }));
  const dropped = new Set<Line>(repeated);
  for (const { line, edge } of edges) {
    if (PAGE_NUMBER.test(line.text)) dropped.add(line);
    // A header with the section's name changes from page to page, but not its height.
    const others = bands.filter((band) => band.edge === edge && Math.abs(band.y - line.y) <= SAME_HEIGHT_POINTS).length;
    if (others >= pages.length / 2 && /\d/.test(line.text)) dropped.add(line);
  }
  return pages.map(({ lines }) => lines.filter((line) => !dropped.has(line)));
}

function edgesOf({ lines, height }: PageLines): Edge[] {
  const down = lines.toSorted((a, b) => a.y - b.y);
  const heights = [...new Set(down.map(({ y }) => y))];
  const top = heights[Math.min(EDGE_LINES, heights.length) - 1] ?? 0;
  const bottom = heights.at(-Math.min(EDGE_LINES, heights.length)) ?? 0;
  return down.flatMap((line): Edge[] => {
    if (line.y <= top && line.y <= height * EDGE_SHARE) return [{ line, edge: 'top' }];
    return line.y >= bottom && line.y >= height * (1 - EDGE_SHARE) ? [{ line, edge: 'bottom' }] : [];
  });
}

/** The same words, numbers aside, at the same height of at least two pages, and of one in five. */
function repeatedOf(edges: readonly Edge[], pages: number): Set<Line> {
  const groups = new Map<string, Line[]>();
  for (const { line, edge } of edges) {
    const words = line.text.toLowerCase().replaceAll(/\d+|\b[ivxlc]+\b/g, '#');
    const key = `${edge} ${words}`;
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  const repeated = new Set<Line>();
  for (const lines of groups.values()) {
    for (const line of lines) {
      const same = lines.filter(({ y }) => Math.abs(y - line.y) <= SAME_HEIGHT_POINTS);
      if (new Set(same.map(({ page }) => page)).size >= Math.max(2, pages / 5)) repeated.add(line);
    }
  }
  return repeated;
}
