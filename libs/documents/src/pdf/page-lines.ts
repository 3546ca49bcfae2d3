import type { Glyphs, PdfPageText } from './parse-pdf.js';

/** One line of a column, in the font of most of its characters. */
export interface Line extends Glyphs {
  readonly page: number;
  /** Counts the columns of all pages; the gap between two lines means something only within one. */
  readonly column: string;
}

/** A gap wider than this many ems parts a line into the lines of two columns, or two cells. */
const COLUMN_GAP_EMS = 1.2;
/** Raised and lowered signs stay in their line. */
const BASELINE_EMS = 0.35;
const COLUMN_LINES_MIN = 5;

/** A page's lines in reading order: what spans both columns, then the left one, then the right one, band by band. */
export function linesOf({ page, glyphs }: PdfPageText): Line[] {
  const rows = rowsOf(glyphs);
  const segments = rows.flatMap((row) => splitAtGaps(row));
  const gutter = gutterOf(segments);
  if (gutter === null) return rows.map((row) => lineOf(row, page, `${page}`));
  const lines: Line[] = [];
  let band = { left: [] as Line[], right: [] as Line[] };
  let bands = 0;
  const flush = () => {
    lines.push(...band.left, ...band.right);
    band = { left: [], right: [] };
    bands += 1;
  };
  for (const row of rows) {
    for (const part of splitAcross(row, gutter)) {
      const side = sideOf(part, gutter);
      if (side === 'both') flush();
      const line = lineOf(part, page, `${page}.${bands}.${side}`);
      if (side === 'both') lines.push(line);
      else band[side].push(line);
    }
  }
  flush();
  return lines;
}

type Row = readonly Glyphs[];
const leftOf = (row: Row) => Math.min(...row.map(({ x }) => x));
const rightOf = (row: Row) => Math.max(...row.map(({ right }) => right));
const sizeOf = (row: Row) => Math.max(...row.map(({ size }) => size));

/** Pieces of about one baseline, from left to right; rows from the top down. */
function rowsOf(glyphs: readonly Glyphs[]): Glyphs[][] {
  const rows: Array<{ y: number; size: number; glyphs: Glyphs[] }> = [];
  for (const glyph of glyphs.toSorted((a, b) => a.y - b.y || a.x - b.x)) {
    const row = rows.at(-1);
    if (row && glyph.y - row.y <= BASELINE_EMS * Math.max(row.size, glyph.size)) {
      row.glyphs.push(glyph);
      // The larger of both has the baseline, so that a raised sign does not lift its line.
      if (glyph.size > row.size) Object.assign(row, { y: glyph.y, size: glyph.size });
    } else rows.push({ y: glyph.y, size: glyph.size, glyphs: [glyph] });
  }
  return rows.map((row) => row.glyphs.toSorted((a, b) => a.x - b.x));
}

function splitAtGaps(row: Row): Glyphs[][] {
  const parts: Glyphs[][] = [];
  let right = Number.NEGATIVE_INFINITY;
  for (const glyph of row) {
    if (parts.length === 0 || glyph.x - right > COLUMN_GAP_EMS * glyph.size) parts.push([glyph]);
    else parts.at(-1)?.push(glyph);
    right = Math.max(right, glyph.right);
  }
  return parts;
}

/** The middle of the empty stripe between two columns of prose; null where a page has one column, or a table. */
function gutterOf(segments: readonly Row[]): number | null {
  if (segments.length < 2 * COLUMN_LINES_MIN) return null;
  const left = Math.min(...segments.map(leftOf));
  const width = Math.max(...segments.map(rightOf)) - left;
  let best: { x: number; crossing: number } | null = null;
  for (let share = 0.35; share <= 0.65; share += 0.01) {
    const x = left + width * share;
    const crossing = segments.filter((row) => sideOf(row, x) === 'both').length;
    if (!best || crossing < best.crossing) best = { x, crossing };
  }
  if (!best) return null;
  const { x, crossing } = best;
  const sides = (['left', 'right'] as const).map((side) => segments.filter((row) => sideOf(row, x) === side));
  const enough = sides.every((rows) => rows.length >= COLUMN_LINES_MIN && medianWidth(rows) > width * 0.28);
  return enough && crossing < segments.length * 0.4 ? x : null;
}

function medianWidth(rows: readonly Row[]): number {
  const widths = rows.map((row) => rightOf(row) - leftOf(row)).toSorted((a, b) => a - b);
  return widths[widths.length >> 1] ?? 0;
}

function sideOf(row: Row, gutter: number): 'left' | 'right' | 'both' {
  if (rightOf(row) <= gutter) return 'left';
  return leftOf(row) >= gutter ? 'right' : 'both';
}

/** Both columns' parts of one row; a row that is written across the gutter stays whole. */
function splitAcross(row: Row, gutter: number): Row[] {
  if (splitAtGaps(row).some((part) => sideOf(part, gutter) === 'both')) return [row];
  return [row.filter(({ right }) => right <= gutter), row.filter(({ right }) => right > gutter)].filter((part) => part.length > 0);
}

function lineOf(row: Row, page: number, column: string): Line {
  const main = mostOf(row);
  const weight = row.reduce((sum, { text }) => sum + text.length, 0);
  const mono = row.reduce((sum, { text, monospace }) => sum + (monospace ? text.length : 0), 0);
  const y = row.find(({ size }) => size === sizeOf(row))?.y ?? 0;
  return { text: joined(row), page, x: leftOf(row), right: rightOf(row), y, ...main, monospace: mono > weight / 2, column };
}

function mostOf(row: Row): { size: number; font: string } {
  const weights = new Map<string, { size: number; font: string; chars: number }>();
  for (const { size, font, text } of row) {
    const rounded = Math.round(size * 2) / 2;
    const known = weights.get(`${rounded} ${font}`);
    if (known) known.chars += text.length;
    else weights.set(`${rounded} ${font}`, { size: rounded, font, chars: text.length });
  }
  const [{ size, font } = { size: 0, font: '' }] = [...weights.values()].toSorted((a, b) => b.chars - a.chars);
  return { size, font };
}

/** Spaces are where the PDF leaves room for them; leaders of dots are squeezed. */
function joined(row: Row): string {
  let text = '';
  let right: number | null = null;
  for (const glyph of row) {
    const apart = right !== null && glyph.x - right > 0.15 * glyph.size;
    text += `${apart && !text.endsWith(' ') && !glyph.text.startsWith(' ') ? ' ' : ''}${glyph.text}`;
    right = glyph.right;
  }
  return text
    .replaceAll(/(?: ?\. ?){5,}/g, ' … ')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
}
