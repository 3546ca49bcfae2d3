import type { Line } from './page-lines.js';
import type { OutlineEntry } from './read-pages.js';

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
