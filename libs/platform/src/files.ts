import { readFileSync, statSync } from 'node:fs';
import { EtudeError } from '@etude/contracts/errors';
import type { z } from 'zod';

/** Reads a JSON file, called `what` in messages. @throws EtudeError FAILED_PRECONDITION naming the file and what is wrong in it */
export function readJsonFile<S extends z.ZodType>(what: string, path: string, schema: S): z.output<S> {
  const fail = (why: string) => new EtudeError('FAILED_PRECONDITION', `The ${what} ${path} ${why}.`);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    // The message of a parser may quote the file, which may hold secrets.
    throw fail(`can't be read: ${(error as Error).message.replace(/, (\.{3})?"[^]*$/, '')}`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw fail(`is wrong at ${issue?.path.join('.') || 'its top'}: ${issue?.message ?? 'unknown'}`);
}

/** A text that changes whenever the file does; empty where there is no file. */
function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? '' : `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
}

/**
 * Returns a getter of the file's value, which reads the file again whenever it changes. If a new version can't be read, the last good value
 * stays and the error is reported once.
 *
 * @throws any error of `read` for the first version
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
