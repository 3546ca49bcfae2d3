import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Cli } from '../cli.js';
import { hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { readText, writeWhole } from '../files.js';
import { SCRIPTED } from '../show.js';
import { runFile } from './families.command.js';
import {
  ARMS,
  figureCells,
  type Figures,
  figuresOf,
  figuresText,
  KINDS,
  type Measure,
  MEASURES,
  type Row,
  RunLine,
  valueText,
} from './figures.js';
import { parseLines } from './problems.js';

const PIXELS_PER_UNIT = 2;
const FONTS = ['DejaVuSans', 'DejaVuSans-Bold'];
/** Set once the renderer was started. A process can start the renderer only once. */
let started: Promise<void> | undefined;

/** Renders a picture in its own font, so that it looks the same on every machine. */
export async function pngOf(svg: string): Promise<Uint8Array> {
  const { resolve } = createRequire(import.meta.url);
  const { initWasm, Resvg } = await import('@resvg/resvg-wasm');
  await (started ??= readFile(resolve('@resvg/resvg-wasm/index_bg.wasm')).then(initWasm));
  const fontBuffers = await Promise.all(FONTS.map((name) => readFile(resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`))));
  const font = { fontBuffers, defaultFontFamily: 'DejaVu Sans', sansSerifFamily: 'DejaVu Sans' };
  return new Resvg(svg, { fitTo: { mode: 'zoom', value: PIXELS_PER_UNIT }, font }).render().asPng();
}

const NAMES: Readonly<Record<Row['kind'], string>> = {
  all: 'All tasks',
  house_rule: 'House rules',
  procedure: 'Procedures',
  distractor: 'Distractors',
};
const ABOUT: Readonly<Record<Row['kind'], string>> = {
  all: 'The figures with memory include the calls and tokens of learning, and of the consolidation after each round.',
  house_rule: 'No task states the rule. Only the reference solutions show it, which a reflection sees.',
  procedure: 'One function under another name in every round.',
  distractor: 'Tasks worded like those of another family, but with a different rule.',
};

export function reportSvg(figures: Figures): string {
  const charts = MEASURES.slice(0, 3).map((measure) => chartOf(figures, 'all', measure));
  return svgOf(charts, noteOf(figures));
}

const noteOf = ({ runs, scripted }: Figures) =>
  `${runs.join(', ')}${scripted ? ` ${SCRIPTED}: the answers came from a script, not from a model` : ''}`;

/** One HTML page without scripts and without other files. */
export function reportPage(figures: Figures): string {
  const kinds = (['all', ...KINDS] as const).filter((kind) => figures.rows.some((row) => row.kind === kind));
  const sections = kinds.map((kind) => {
    const charts = MEASURES.filter((measure) => isDrawn(figures, kind, measure)).map((measure) => chartOf(figures, kind, measure));
    return `<h2>${NAMES[kind]}</h2>\n<p>${ABOUT[kind]}</p>\n${svgOf(charts)}`;
  });
  const [head = [], ...rows] = figureCells(figures);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Learning curves</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem;color:#1f2328;background:#fff}table{border-collapse:collapse}
td,th{padding:.2rem .8rem;border-bottom:1px solid #d0d7de;text-align:right}svg{max-width:100%;height:auto}</style></head>
<body><h1>Learning curves</h1>
<p>${escaped(noteOf(figures))}</p>
${sections.join('\n')}
<h2>Figures</h2>
<table>${lineOf(head, 'th')}
${rows.map((cells) => lineOf(cells, 'td')).join('\n')}</table>
</body></html>
`;
}

const lineOf = (cells: readonly string[], tag: string) => `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`;

function isDrawn({ rows }: Figures, kind: Row['kind'], { title, unit }: Measure): boolean {
  if (title === 'Answered by a skill') return kind === 'procedure';
  return unit !== 'money' || rows.some(({ costUsd }) => costUsd > 0);
}

type ReportOptions = Readonly<Partial<Record<'html' | 'svg' | 'png', string>>>;

async function report(cli: Cli, { html, svg, png }: ReportOptions, runs: readonly string[]): Promise<number> {
  const paths = runs.map((run) => (existsSync(run) ? run : runFile(cli, run)));
  const figures = figuresOf(paths.flatMap((path) => parseLines((line) => RunLine.parse(line), readText(path), path)));
  if (figures.rows.length === 0) throw new CliError(EXIT.usage, 'these runs have no finished task yet', [`looked in ${paths.join(', ')}`]);
  if (html !== undefined) await writeWhole(html, (write) => write(reportPage(figures)));
  if (svg !== undefined) await writeWhole(svg, (write) => write(`${reportSvg(figures)}\n`));
  if (png !== undefined) {
    const picture = await pngOf(reportSvg(figures));
    await writeWhole(png, (write) => write(picture));
  }
  cli.out.data(figures, figuresText(figures));
  return EXIT.ok;
}

export const REPORT = hand<ReportOptions>({
  command: 'report <runs...>',
  help: 'draw the learning curves of runs of families; a run is its id, or its file of JSON lines',
  flags: {
    '--html <file>': 'write a page with all curves',
    '--svg <file>': 'write an SVG picture of the main curves',
    '--png <file>': 'write a PNG picture of the main curves',
  },
  run: report,
});

const [WIDTH, HEIGHT] = [300, 190];
const PLOT = { left: 58, right: 14, top: 44, bottom: 28 };
const COLOURS = { with: '#1f6feb', without: '#9a6700' };
const FONT = 'font-family="system-ui, sans-serif" font-size="11"';

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`).replaceAll(/(?![\n\t])\p{Cc}/gu, '\u{fffd}');

function svgOf(charts: readonly string[], note = ''): string {
  const [width, height] = [WIDTH * charts.length, HEIGHT + (note === '' ? 0 : 24)];
  const below = note === '' ? '' : words(10, height - 8, note, 'fill="#57606a"');
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" ${FONT}>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    ...charts.map((chart, at) => `<g transform="translate(${WIDTH * at} 0)">${chart}</g>`),
    `${below}</svg>`,
  ].join('\n');
}

const words = (x: number, y: number, text: string, more = '') => `<text x="${round(x)}" y="${round(y)}" ${more}>${escaped(text)}</text>`;
const round = (value: number) => Number(value.toFixed(1));

function roundAbove(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value || 1));
  return unit * ([1, 2, 4, 6, 8].find((times) => times * unit >= value) ?? 10);
}

function chartOf({ rows }: Figures, kind: Row['kind'], { title, unit, of }: Measure): string {
  const rounds = [...new Set(rows.map((row) => row.round))];
  const shown = rows.filter((row) => row.kind === kind);
  const top = unit === 'percent' ? 100 : roundAbove(Math.max(0, ...shown.map(of)));
  const x = (at: number) => PLOT.left + ((WIDTH - PLOT.left - PLOT.right) * at) / Math.max(1, rounds.length - 1);
  const y = (value: number) => HEIGHT - PLOT.bottom - ((HEIGHT - PLOT.top - PLOT.bottom) * value) / top;
  const grid = [0, 0.5, 1].map((share) => {
    const at = round(y(top * share));
    const rule = `<path d="M${PLOT.left} ${at}H${WIDTH - PLOT.right}" stroke="#d0d7de"/>`;
    return rule + words(PLOT.left - 6, at + 4, valueText(unit, top * share), 'text-anchor="end" fill="#57606a"');
  });
  const ticks = rounds.map((one, at) =>
    words(x(at), HEIGHT - 10, at === 0 ? `Round ${one}` : String(one), 'text-anchor="middle" fill="#57606a"'),
  );
  const lines = ARMS.map((arm, at) => {
    const points = shown.filter((row) => row.arm === arm).map((row) => [round(x(rounds.indexOf(row.round))), round(y(of(row)))] as const);
    const dots = points.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${COLOURS[arm]}"/>`);
    const path = `<polyline points="${points.map((point) => point.join(',')).join(' ')}" fill="none" stroke="${COLOURS[arm]}" stroke-width="2"/>`;
    return path + dots.join('') + words(PLOT.left + 110 * at, 34, `● ${arm} memory`, `fill="${COLOURS[arm]}"`);
  });
  return [words(10, 18, title, 'font-weight="600" fill="#1f2328"'), ...grid, ...ticks, ...lines].join('');
}
