/** One line of a chart, by round. null: no value for that round. */
export interface Series {
  readonly label: string;
  readonly values: ReadonlyArray<number | null>;
}

export interface Chart {
  readonly title: string;
  /** The labels below the axis, one for each value. */
  readonly rounds: readonly string[];
  readonly series: readonly Series[];
  /** Writes a value of the vertical axis. */
  readonly text: (value: number) => string;
  /** End of the vertical axis; default: a round number above all values. It begins at 0. */
  readonly max?: number;
}

const [WIDTH, HEIGHT] = [300, 190];
const PLOT = { left: 58, right: 14, top: 44, bottom: 28 };
const COLOURS = ['#1f6feb', '#9a6700', '#1a7f37'];
const FONT = 'font-family="system-ui, sans-serif" font-size="11"';

export const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`).replaceAll(/(?![\n\t])\p{Cc}/gu, '\u{fffd}');

/** A picture with the charts in rows. It needs nothing from outside. @param note a line below them */
export function svgOf(charts: readonly Chart[], columns: number, note = ''): string {
  const [width, rows] = [WIDTH * Math.min(columns, charts.length), Math.ceil(charts.length / columns)];
  const height = HEIGHT * rows + (note === '' ? 0 : 24);
  const placed = charts.map((chart, at) => {
    const [x, y] = [WIDTH * (at % columns), HEIGHT * Math.floor(at / columns)];
    return `<g transform="translate(${x} ${y})">${chartParts(chart)}</g>`;
  });
  const below = note === '' ? '' : words(10, height - 8, note, 'fill="#57606a"');
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" ${FONT}>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    ...placed,
    `${below}</svg>`,
  ].join('\n');
}

const words = (x: number, y: number, text: string, more = '') => `<text x="${round(x)}" y="${round(y)}" ${more}>${escaped(text)}</text>`;
const round = (value: number) => Number(value.toFixed(1));

function roundAbove(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value || 1));
  return unit * ([1, 2, 4, 6, 8].find((times) => times * unit >= value) ?? 10);
}

function chartParts({ title, rounds, series, text, max }: Chart): string {
  const values = series.flatMap((line) => line.values).filter((value) => value !== null);
  const top = max ?? roundAbove(Math.max(0, ...values));
  const x = (at: number) => PLOT.left + ((WIDTH - PLOT.left - PLOT.right) * at) / Math.max(1, rounds.length - 1);
  const y = (value: number) => HEIGHT - PLOT.bottom - ((HEIGHT - PLOT.top - PLOT.bottom) * value) / top;
  const grid = [0, 0.5, 1].map((share) => {
    const at = round(y(top * share));
    const rule = `<path d="M${PLOT.left} ${at}H${WIDTH - PLOT.right}" stroke="#d0d7de"/>`;
    return rule + words(PLOT.left - 6, at + 4, text(top * share), 'text-anchor="end" fill="#57606a"');
  });
  const ticks = rounds.map((label, at) => words(x(at), HEIGHT - 10, label, 'text-anchor="middle" fill="#57606a"'));
  const lines = series.map(({ label, values: of }, at) => {
    const colour = `${COLOURS[at % COLOURS.length]}`;
    const points = of.flatMap((value, place) => (value === null ? [] : [[round(x(place)), round(y(value))] as const]));
    const dots = points.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`);
    const path = `<polyline points="${points.map((point) => point.join(',')).join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`;
    return path + dots.join('') + words(PLOT.left + 110 * at, 34, `● ${label}`, `fill="${colour}"`);
  });
  return [words(10, 18, title, 'font-weight="600" fill="#1f2328"'), ...grid, ...ticks, ...lines].join('');
}

const BAR_WIDTH = 40;

/** Bars of text, one line for each value, as long as its share of the largest. */
export function bars(rows: ReadonlyArray<readonly [label: string, value: number]>): string {
  const largest = Math.max(1, ...rows.map(([, value]) => value));
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows
    .map(
      ([label, value]) => `${label.padEnd(width)}  ${'█'.repeat(Math.round((value / largest) * BAR_WIDTH))}${value > 0 ? ' ' : ''}${value}`,
    )
    .join('\n');
}
