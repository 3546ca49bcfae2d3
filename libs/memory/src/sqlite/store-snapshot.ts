import { backup, DatabaseSync } from 'node:sqlite';
import type { StoreOptions } from '../record-store.js';
import { memoryError } from './sqlite-errors.js';

const LOCK_WAIT_MS = 30_000;
/** More than any file has: SQLite copies all pages in one step, so that writers don't make it start again. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Copies a memory file that services write to. Writers wait while `moment` runs, so the copy has the state of that whole time. They go on
 * while pages are copied.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL; what `moment` throws
 */
export async function snapshotFile(path: string, copy: string, moment: () => Promise<void>): Promise<void> {
  const opened: DatabaseSync[] = [];
  const open = () => {
    const db = new DatabaseSync(path, { timeout: LOCK_WAIT_MS });
    opened.push(db);
    return db;
  };
  try {
    const [writer, reader] = [open(), open()];
    writer.exec('BEGIN IMMEDIATE');
    await moment();
    // The first read fixes the state that this transaction sees.
    reader.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
    writer.exec('ROLLBACK');
    await backup(reader, copy, { rate: ALL_PAGES });
  } catch (error) {
    throw memoryError(error, path);
  } finally {
    opened.forEach((db) => db.close());
  }
}

/** The vector model of a memory file that no service uses. @throws EtudeError MEMORY_UNAVAILABLE */
export function modelOfFile(path: string): StoreOptions['model'] {
  try {
    const db = new DatabaseSync(path);
    try {
      return db
        .prepare('SELECT name, dimension FROM model WHERE ready = 1 ORDER BY id DESC LIMIT 1')
        .get() as unknown as StoreOptions['model'];
    } finally {
      db.close();
    }
  } catch (error) {
    throw memoryError(error, path);
  }
}
