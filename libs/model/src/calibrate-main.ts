import { readFileSync, statSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import { BUILT_IN_PAIRS } from '@etude/domain/retrieval/pairs/reworded-tasks';
import type { LabelledPair } from '@etude/domain/retrieval/pairs/near-tasks';
import { z } from 'zod';
import { calibrateEmbedder } from './calibrate-embedder.js';
import { embedderConfig, embedderFrom } from './model-config.js';

const Pair = z.strictObject({ a: z.string().min(1), b: z.string().min(1), same: z.enum(['words', 'task', 'no']) });
const BYTES_MAX = 16 * 1024 * 1024;

const wrong = (path: string, what: string) => new EtudeError('INVALID_ARGUMENT', `${path}: ${what}`);

function readLine(line: string, at: string): LabelledPair {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw wrong(at, `not JSON: ${(error as Error).message}`);
  }
  const parsed = Pair.safeParse(value);
  if (parsed.success) return parsed.data;
  throw wrong(at, parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`.trim()).join('; '));
}

/** JSON Lines of {a, b, same: "words" | "task" | "no"}; empty lines are left out. @throws EtudeError INVALID_ARGUMENT naming the line */
export function readPairs(path: string): LabelledPair[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw wrong(path, 'there is no such file');
  if (stat.size > BYTES_MAX) throw wrong(path, `too large: at most ${BYTES_MAX / 1024 / 1024} MiB are read`);
  const lines = readFileSync(path, 'utf8').split(/\r?\n/);
  const pairs = lines.flatMap((line, i) => (line.trim() === '' ? [] : [readLine(line, `${path}, line ${i + 1}`)]));
  if (pairs.length === 0) throw wrong(path, 'there is no pair in it');
  return pairs;
}

/** `calibrate-main [PAIRS.jsonl]`: a report about the embedder that the environment names, as JSON on stdout; 2 where something is wrong. */
async function main([path]: readonly string[]): Promise<void> {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const embedder = await embedderFrom(embedderConfig.parse(given), { warn: (message) => process.stderr.write(`${message}\n`) });
  const report = await calibrateEmbedder(path === undefined ? BUILT_IN_PAIRS : readPairs(path), { embedder }, new AbortController().signal);
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
