import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { EtudeError } from '@etude/contracts/errors';
import { memoryError } from './sqlite-errors.js';

type Outcome = { readonly log: 'emptied' | 'read' } | { readonly errcode: number; readonly message: string };

/**
 * Writes the file anew without what was removed, and empties its write-ahead log; in a thread, so that the caller's process goes on. SQLite
 * holds its write lock for all of that, seconds for a large file.
 *
 * @returns whether the log could be emptied; not where another process reads an old state
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL
 */
export async function rewriteFile(path: string, lockWaitMs: number): Promise<boolean> {
  const outcome = await inThread({ path, lockWaitMs });
  if ('errcode' in outcome) throw memoryError(Object.assign(new Error(outcome.message), { errcode: outcome.errcode }), path);
  return outcome.log === 'emptied';
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
