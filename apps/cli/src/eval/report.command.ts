import { existsSync } from 'node:fs';
import type { Cli } from '../cli.js';
import { hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { readText, writeWhole } from '../files.js';
import { runFile } from './families.command.js';
import { figuresOf, figuresText, RunLine } from './figures.js';
import { parseLines } from './problems.js';
import { pngOf } from './png.js';
import { reportPage, reportSvg } from './report-page.js';

interface ReportOptions {
  readonly html?: string;
  readonly svg?: string;
  readonly png?: string;
}

/** `etude eval report`: prints the figures of runs and draws their curves. Needs no gateway. */
async function report(cli: Cli, { html, svg, png }: ReportOptions, runs: readonly string[]): Promise<number> {
  const paths = runs.map((run) => (existsSync(run) ? run : runFile(cli, run)));
  const figures = figuresOf(paths.flatMap((path) => parseLines((line) => RunLine.parse(line), readText(path), path)));
  if (figures.rows.length === 0) throw new CliError(EXIT.usage, 'no task of these runs has ended', [`looked in ${paths.join(', ')}`]);
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
    '--svg <file>': 'write a picture of the main curves',
    '--png <file>': 'write the same picture in pixels',
  },
  run: report,
});
