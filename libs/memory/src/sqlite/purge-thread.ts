import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * The thread that writes a memory file anew: with a connection of its own, so that whoever started it goes on with other work
 * meanwhile. Imports nothing of this package, since it is also run as the source that it is.
 */
const { path, lockWaitMs } = workerData as { readonly path: string; readonly lockWaitMs: number };

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows, not of threads
parentPort?.postMessage(rewrite());

/** `log: 'read'`: somebody reads an old state, so the log could not be emptied. */
function rewrite(): { readonly log: 'emptied' | 'read' } | { readonly errcode: number; readonly message: string } {
  try {
    const db = new DatabaseSync(path, { timeout: lockWaitMs });
    try {
      // FTS5 only marks removed rows as gone, until it merges.
      db.exec("PRAGMA secure_delete = ON; INSERT INTO record_words (record_words) VALUES ('optimize')");
      // Its copy of what is left may be large; that of what was removed is not in it.
      db.exec('PRAGMA synchronous = FULL; PRAGMA temp_store = FILE; VACUUM');
      return { log: db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0 ? 'emptied' : 'read' };
    } finally {
      db.close();
    }
  } catch (error) {
    const { errcode, message } = error as { readonly errcode?: number; readonly message: string };
    return { errcode: errcode ?? 1, message };
  }
}
