import { readFileSync, statSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import type { z } from 'zod';

/** Reads a JSON file. @param what for messages, such as "key file" @throws EtudeError FAILED_PRECONDITION naming the file and what is wrong in it */
export function readJsonFile<S extends z.ZodType>(what: string, path: string, schema: S): z.output<S> {
  const fail = (why: string) => new EtudeError('FAILED_PRECONDITION', `The ${what} ${path} ${why}.`);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw fail(`can't be read: ${(error as Error).message}`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw fail(`is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? 'unknown'}`);
}

/** Changes with the file; empty where there is none. */
function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? '' : `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
}

/**
 * The value of a file that is read again whenever it changes, so that a change needs no restart. A version that can't be read leaves the
 * last good value in place and is reported once.
 *
 * @throws what `read` throws for the first version
 */
export function watchedFile<T>(path: string, read: () => T, report: (error: unknown) => void): () => T {
  let stamp = stampOf(path);
  let value = read();
  return () => {
    const now = stampOf(path);
    if (now === stamp) return value;
    stamp = now;
    try {
      value = read();
    } catch (error) {
      report(error);
    }
    return value;
  };
}
