import { existsSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { EtudeError } from '@etude/contracts/errors';
import { memoryError } from './sqlite-errors.js';

/** The sign of a rewrite that goes on is touched so often, and believed for so long after. */
const SIGN_EVERY_MS = 500;
const SIGN_FRESH_MS = 5_000;

type Outcome = { readonly log: 'emptied' | 'read' } | { readonly errcode: number; readonly message: string };

/**
 * Writes the file anew without what was removed, and empties its write-ahead log; in a thread, so that the caller's process goes on.
 *
 * SQLite holds its write lock for all of that, seconds for a large file. A sign beside the file tells the writers of every process that
 * their wait has an end; see `isBeingRewritten`.
 *
 * @returns whether the log could be emptied; not where another process reads an old state
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL
 */
export async function rewriteFile(path: string, lockWaitMs: number): Promise<boolean> {
  const outcome = await whileRewriting(path, () => inThread({ path, lockWaitMs }));
  if ('errcode' in outcome) throw memoryError(Object.assign(new Error(outcome.message), { errcode: outcome.errcode }), path);
  return outcome.log === 'emptied';
}

/** With a sign beside the file, so that whoever waits for the lock is patient; see `isBeingRewritten`. `work` leaves the event loop free. */
export async function whileRewriting<T>(path: string, work: () => Promise<T>): Promise<T> {
  const sign = signOf(path);
  writeFileSync(sign, '', { mode: 0o600 });
  const touch = setInterval(() => touchFile(sign), SIGN_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(touch);
    rmSync(sign, { force: true });
  }
}

/** Whether some process writes the file anew right now; one that was killed does not count for long. */
export function isBeingRewritten(path: string): boolean {
  const found = statSync(signOf(path), { throwIfNoEntry: false });
  return found !== undefined && Date.now() - found.mtimeMs < SIGN_FRESH_MS;
}

function signOf(path: string): string {
  return `${path}-rewriting`;
}

/** Another process that rewrote the file may have taken the sign away with its own end. */
function touchFile(sign: string): void {
  if (!existsSync(sign)) writeFileSync(sign, '', { mode: 0o600 });
  else utimesSync(sign, new Date(), new Date());
}

function inThread(workerData: { readonly path: string; readonly lockWaitMs: number }): Promise<Outcome> {
  // Built or as source, the thread's file is beside this one with the same ending.
  const worker = new Worker(new URL(`./purge-thread${extname(import.meta.url)}`, import.meta.url), { workerData, execArgv: [] });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) =>
      reject(new EtudeError('MEMORY_UNAVAILABLE', `the thread that writes ${workerData.path} anew ended early (${code}); repeat this`)),
    );
  });
}
