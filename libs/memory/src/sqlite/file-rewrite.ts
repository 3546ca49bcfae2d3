import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { EtudeError } from '@etude/contracts/errors';
import { memoryError } from './sqlite-errors.js';

type Outcome = { readonly log: 'emptied' | 'read' } | { readonly errcode: number; readonly message: string };

/**
 * Rewrites the file without removed data and empties its write-ahead log. Runs in a thread, so that the process stays responsive. SQLite
 * holds its write lock all the time, which takes seconds for a large file.
 *
 * @returns whether the log could be emptied; false if another process reads an old state
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL
 */
export async function rewriteFile(path: string, lockWaitMs: number): Promise<boolean> {
  const outcome = await inThread({ path, lockWaitMs });
  if ('errcode' in outcome) throw memoryError(Object.assign(new Error(outcome.message), { errcode: outcome.errcode }), path);
  return outcome.log === 'emptied';
}

function inThread(workerData: { readonly path: string; readonly lockWaitMs: number }): Promise<Outcome> {
  // Built or as source, the thread's file is next to this one, with the same extension.
  const worker = new Worker(new URL(`./purge-thread${extname(import.meta.url)}`, import.meta.url), { workerData, execArgv: [] });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) =>
      reject(new EtudeError('MEMORY_UNAVAILABLE', `the thread that writes ${workerData.path} anew ended early (${code}); repeat this`)),
    );
  });
}
