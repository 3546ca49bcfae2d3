import { fenced } from '../section-builder.js';
import type { Line } from './page-lines.js';

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
