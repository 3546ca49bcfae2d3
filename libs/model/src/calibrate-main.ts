import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import type { Embedder } from '@etude/domain/ports/model';
import {
  calibration,
  cosineOf,
  countRight,
  fitCalibration,
  type LabelledPair,
  quantile,
  type ScoredPair,
} from '@etude/domain/retrieval/calibration';
import { z } from 'zod';
import { embedderConfig, embedderFrom } from './model-config.js';

/** If there are more pairs of unrelated texts, about this many are sampled evenly. This suffices for quantiles. */
const UNRELATED_MAX = 20_000;
const DIGITS = 3;
const rounded = (value: number) => Number(value.toFixed(DIGITS));

function quantilesOf(cosines: readonly number[]) {
  const at = (share: number) => rounded(quantile(cosines, share));
  return cosines.length === 0 ? null : { pairs: cosines.length, p5: at(0.05), p50: at(0.5), p95: at(0.95) };
}

/** Cosines between the first text of each pair and the second texts of all other pairs. If there are too many, they are sampled. */
function unrelatedCosines(vectors: ReadonlyArray<readonly [Float32Array, Float32Array]>): number[] {
  const step = Math.max(1, Math.ceil((vectors.length * (vectors.length - 1)) / UNRELATED_MAX));
  const cosines: number[] = [];
  let seen = 0;
  for (const [i, [a]] of vectors.entries()) {
    for (const [j, [, b]] of vectors.entries()) if (i !== j && seen++ % step === 0) cosines.push(cosineOf(a, b));
  }
  return cosines;
}

function fit(scored: readonly ScoredPair[], unrelated: readonly number[]) {
  const fitted = fitCalibration(scored, unrelated);
  if (!fitted) return null;
  const anchors = { unrelated: rounded(fitted.unrelated), sameTask: rounded(fitted.sameTask), sameWords: rounded(fitted.sameWords) };
  const settings = [
    `ETUDE_EMBEDDING_COSINE_UNRELATED=${anchors.unrelated}`,
    `ETUDE_EMBEDDING_COSINE_SAME_TASK=${anchors.sameTask}`,
    `ETUDE_EMBEDDING_COSINE_SAME_WORDS=${anchors.sameWords}`,
  ];
  return { anchors, settings, ...countRight(scored, calibration(anchors)) };
}

/** Measures how well an embedder judges labelled pairs, and finds the best settings. @throws errors of the embedder */
export async function calibrateEmbedder(pairs: readonly LabelledPair[], embedder: Embedder, signal: AbortSignal) {
  const { profile } = embedder;
  const { model, dimension } = profile;
  const texts = pairs.flatMap(({ a, b }) => [a, b]);
  const made = await embedder.embed(texts, signal);
  const none = new Float32Array(dimension);
  const vectors = pairs.map((_, i) => [made[2 * i] ?? none, made[2 * i + 1] ?? none] as const);
  const scored = pairs.map(({ same }, i) => ({ same, cosine: cosineOf(...(vectors[i] ?? [none, none])) }));
  const unrelated = unrelatedCosines(vectors);
  const of = (kind: LabelledPair['same']) => quantilesOf(scored.filter(({ same }) => same === kind).map(({ cosine }) => cosine));
  return {
    model,
    dimension,
    /** Quantiles by kind of pair. `unrelated` is for texts of different pairs. */
    cosines: { words: of('words'), task: of('task'), no: of('no'), unrelated: quantilesOf(unrelated) },
    /** Counts of right judgements with the present calibration. */
    now: countRight(scored, (cosine) => profile.calibrate(cosine)),
    fitted: fit(scored, unrelated),
  };
}

const Pair = z.strictObject({ a: z.string().min(1), b: z.string().min(1), same: z.enum(['words', 'task', 'no']) });
const BUILT_IN = fileURLToPath(new URL('../pairs/', import.meta.url));

/** Reads JSON Lines of {a, b, same: "words" | "task" | "no"}. @throws EtudeError INVALID_ARGUMENT that names the line; Error without the file */
export function readPairs(path: string): LabelledPair[] {
  const lines = readFileSync(path, 'utf8').split(/\r?\n/);
  const pairs = lines.flatMap((line, i) => (line.trim() === '' ? [] : [readLine(line, `${path}, line ${i + 1}`)]));
  if (pairs.length === 0)
    throw new EtudeError(
      'INVALID_ARGUMENT',
      `${path} has no pairs of texts. Each line must be {"a": TEXT, "b": TEXT, "same": "words", "task" or "no"}.`,
    );
  return pairs;
}

function readLine(line: string, place: string): LabelledPair {
  const value = parsedJson(line);
  const { data, error } = Pair.safeParse(value);
  if (data) return data;
  const what = error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`.trim()).join('; ');
  throw new EtudeError('INVALID_ARGUMENT', `${place}: ${value === undefined ? 'not JSON' : what}`);
}

/** The pairs of the folder `pairs`: tasks with nearly the same words, tasks in other words, and facts. */
export const builtInPairs = (): LabelledPair[] =>
  readdirSync(BUILT_IN)
    .toSorted()
    .flatMap((file) => readPairs(BUILT_IN + file));

/** Prints a JSON report about the embedder that the environment chooses. @param path file of pairs; by default the built-in pairs */
async function main([path]: readonly string[]): Promise<void> {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const embedder = await embedderFrom(embedderConfig.parse(given), { warn: (message) => process.stderr.write(`${message}\n`) });
  const report = await calibrateEmbedder(path === undefined ? builtInPairs() : readPairs(path), embedder, new AbortController().signal);
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
}

if (import.meta.main)
  await main(process.argv.slice(2)).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 2;
  });
