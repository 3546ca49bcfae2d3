import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { sayingHowToGoOn } from '../calls.js';
import type { Cli } from '../cli.js';
import { hand } from '../command.js';
import { chooseEmbedder, embedderEnvironment } from '../embedder/embedder.js';
import { CliError, EXIT } from '../errors.js';
import { table } from '../output.js';

interface CalibrateOptions {
  /** JSON Lines of {a, b, same}. */
  readonly pairs?: string;
}

const Right = z.object({ pairs: z.number(), kinds: z.number(), sameness: z.number() });
const Quantiles = z.object({ pairs: z.number(), p5: z.number(), p50: z.number(), p95: z.number() }).nullable();
const Report = z.object({
  model: z.string(),
  dimension: z.number(),
  cosines: z.record(z.string(), Quantiles),
  now: Right,
  fitted: Right.extend({ settings: z.array(z.string()) }).nullable(),
});

function reportText({ model, dimension, cosines, now, fitted }: z.infer<typeof Report>): string {
  const rows = Object.entries(cosines).map(([kind, of]) => [kind, ...(of ? [of.pairs, of.p5, of.p50, of.p95].map(String) : ['0'])]);
  const judged = Object.entries({ 'as it is set': now, fitted });
  const right = judged.flatMap(([what, of]) => (of ? [[what, `${of.sameness} of ${of.pairs}`, `${of.kinds} of ${of.pairs}`]] : []));
  return [
    `${model}, ${dimension} dimensions`,
    table([['COSINES', 'PAIRS', '5%', '50%', '95%'], ...rows]),
    table([['JUDGED RIGHT', 'SAME OR NOT', 'WORDS, TASK OR NO'], ...right]),
    fitted
      ? ['For every service of this memory:', ...fitted.settings.map((line) => `  ${line}`)].join('\n')
      : 'Nothing could be fitted: pairs of every kind are needed, and a model that tells them apart.',
  ].join('\n\n');
}

/** `etude memory calibrate`: what the embedder says about judged pairs, and the settings that fit. Changes nothing. */
async function calibrate(cli: Cli, { pairs }: CalibrateOptions): Promise<number> {
  const environment = { ...cli.settings.environment, ...embedderEnvironment(cli, chooseEmbedder(cli)) };
  const args = [join(cli.root, 'libs/model/dist/calibrate-main.js'), ...(pairs === undefined ? [] : [resolve(pairs)])];
  const child = spawn(process.execPath, args, { cwd: cli.root, env: environment, stdio: ['ignore', 'pipe', 'pipe'], signal: cli.signal });
  const ended = () => Promise.all([text(child.stdout), text(child.stderr), once(child, 'close') as Promise<[number | null]>]);
  const [stdout, stderr, [code]] = await sayingHowToGoOn(cli, ended, 'interrupted; nothing was changed, run the same again');
  if (code !== 0) throw new CliError(EXIT.usage, stderr.trim().split('\n').at(-1) ?? 'the embedder could not be calibrated');
  const report = Report.parse(JSON.parse(stdout));
  cli.out.data(JSON.parse(stdout), reportText(report));
  return EXIT.ok;
}

export const CALIBRATE = hand<CalibrateOptions>({
  command: 'calibrate',
  help: "fit the embedder's similarity to pairs that people have judged; prints settings",
  flags: { '--pairs <file>': 'JSON Lines of {"a", "b", "same": "words" | "task" | "no"} (default: pairs that come with Etude)' },
  run: calibrate,
});
