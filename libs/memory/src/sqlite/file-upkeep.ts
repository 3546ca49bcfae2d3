import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { EtudeError } from '@etude/contracts/errors';
import { memoryError, type StoreFile } from './store-file.js';
import { backup, DatabaseSync } from 'node:sqlite';
import type { Model } from '../record-store.js';

/** Looks for damage by disks and other programs. Our own writes are transactions, so no write is left half done. */
export async function fileDamage(file: StoreFile): Promise<readonly string[]> {
  return file.writeWhole((db) => [...damageIn(db)]);
}

function* damageIn(db: DatabaseSync): Generator<string> {
  // Other processes may have merged word lists since this connection cached their state. A search refreshes the cache.
  db.exec("SELECT rowid FROM record_words WHERE record_words MATCH 'c1:x' LIMIT 1");
  const results = db
    .prepare('PRAGMA quick_check(20)')
    .all()
    .map((row) => row.quick_check);
  if (results[0] !== 'ok') yield `the file is damaged, restore it from a backup: ${results.join('; ')}`;
  try {
    db.exec("INSERT INTO record_words (record_words) VALUES ('integrity-check')");
  } catch (cause) {
    yield `the word lists are damaged, export the memory and import it into a new file: ${(cause as Error).message}`;
  }
}

type Outcome = { readonly log: 'emptied' | 'read' } | { readonly errcode: number; readonly message: string };

/**
 * Rewrites the file and empties its write-ahead log. Removed rows are overwritten with zeros at once, but SQLite moves rows between pages,
 * and old copies stay in a page until it is overwritten. SQLite holds its write lock all the time, which takes seconds for a large file.
 *
 * @throws EtudeError MEMORY_FULL; MEMORY_UNAVAILABLE also if another process reads old pages for longer than the wait for locks
 */
export async function purgeFile({ path, lockWaitMs }: StoreFile): Promise<readonly string[]> {
  const outcome = await rewriteInThread({ path, lockWaitMs });
  if ('errcode' in outcome) throw memoryError(Object.assign(new Error(outcome.message), { errcode: outcome.errcode }), path);
  if (outcome.log === 'read')
    throw new EtudeError(
      'MEMORY_UNAVAILABLE',
      `another process reads an old state of the memory file ${path}. The write-ahead log keeps removed data until that process ends. ` +
        'Then repeat this',
    );
  return [
    'merged the word lists without the removed words',
    'rewrote the file without free pages; their bytes had been overwritten with zeros',
    'emptied the write-ahead log',
  ];
}

function rewriteInThread(workerData: { readonly path: string; readonly lockWaitMs: number }): Promise<Outcome> {
  // The thread's file is next to this file and has the same extension, built or not.
  const worker = new Worker(new URL(`./purge-thread${extname(import.meta.url)}`, import.meta.url), { workerData, execArgv: [] });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) =>
      reject(new EtudeError('MEMORY_UNAVAILABLE', `the thread that rewrites ${workerData.path} ended early (${code}); repeat this`)),
    );
  });
}

const LOCK_WAIT_MS = 30_000;
/** More pages than any file has. So SQLite copies all pages in one step, and writers don't make it start again. */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Copies a memory file that services write to. Writers wait while `moment` runs, so the copy has the state of that time. They continue
 * while pages are copied.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL; what `moment` throws
 */
export async function snapshotFile(path: string, copy: string, moment: () => Promise<void>): Promise<void> {
  try {
    using writer = new DatabaseSync(path, { timeout: LOCK_WAIT_MS });
    using reader = new DatabaseSync(path, { timeout: LOCK_WAIT_MS });
    writer.exec('BEGIN IMMEDIATE');
    await moment();
    // The first read fixes the state that this transaction sees.
    reader.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
    writer.exec('ROLLBACK');
    await backup(reader, copy, { rate: ALL_PAGES });
  } catch (error) {
    throw memoryError(error, path);
  }
}

/** The vector model of a memory file that no service uses. @throws EtudeError MEMORY_UNAVAILABLE */
export function modelOfFile(path: string): Model {
  try {
    using db = new DatabaseSync(path);
    return db.prepare('SELECT name, dimension FROM model WHERE ready = 1 ORDER BY id DESC LIMIT 1').get() as unknown as Model;
  } catch (error) {
    throw memoryError(error, path);
  }
}
