import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * The thread that rewrites a memory file. It has its own connection, so that the process that started it can go on. Imports nothing of this
 * package, because it is also run unbuilt as source.
 */
const { path, lockWaitMs } = workerData as { readonly path: string; readonly lockWaitMs: number };

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- windows need a target origin, threads have none
parentPort?.postMessage(rewrite());

/** `log: 'read'`: another process reads an old state, so the log couldn't be emptied. */
function rewrite(): { readonly log: 'emptied' | 'read' } | { readonly errcode: number; readonly message: string } {
  try {
    using db = new DatabaseSync(path, { timeout: lockWaitMs });
    // Until it merges, FTS5 only marks removed rows as deleted.
    db.exec("PRAGMA secure_delete = ON; INSERT INTO record_words (record_words) VALUES ('optimize')");
    // VACUUM's temporary copy may be large, so it goes to a file. It holds no removed data.
    db.exec('PRAGMA synchronous = FULL; PRAGMA temp_store = FILE; VACUUM');
    return { log: db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0 ? 'emptied' : 'read' };
  } catch (error) {
    const { errcode, message } = error as { readonly errcode?: number; readonly message: string };
    return { errcode: errcode ?? 1, message };
  }
}
