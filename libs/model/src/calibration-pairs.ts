import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EtudeError } from '@etude/contracts/errors';
import type { LabelledPair } from '@etude/domain/retrieval/calibration';
import { z } from 'zod';

const Pair = z.strictObject({ a: z.string().min(1), b: z.string().min(1), same: z.enum(['words', 'task', 'no']) });
const BYTES_MAX = 16 * 1024 * 1024;
const BUILT_IN = fileURLToPath(new URL('../pairs/', import.meta.url));

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

/** Reads JSON Lines of {a, b, same: "words" | "task" | "no"}, without empty lines. @throws EtudeError INVALID_ARGUMENT naming the line */
export function readPairs(path: string): LabelledPair[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw wrong(path, 'there is no such file');
  if (stat.size > BYTES_MAX) throw wrong(path, `too large: at most ${BYTES_MAX / 1024 / 1024} MiB are read`);
  const lines = readFileSync(path, 'utf8').split(/\r?\n/);
  const pairs = lines.flatMap((line, i) => (line.trim() === '' ? [] : [readLine(line, `${path}, line ${i + 1}`)]));
  if (pairs.length === 0) throw wrong(path, 'the file has no pair');
  return pairs;
}

/** The pairs of the folder `pairs`: tasks with nearly the same words, tasks in other words, and facts. */
export const builtInPairs = (): LabelledPair[] =>
  readdirSync(BUILT_IN)
    .toSorted()
    .flatMap((file) => readPairs(BUILT_IN + file));
