import { EtudeError } from '@etude/contracts/errors';
import type { ReadScope } from '@etude/domain/ports/memory';
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import type { StatementSync } from 'node:sqlite';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { load as loadVectorSearch } from 'sqlite-vec';
import type { Collection } from './file-identity.js';
import { checkIdentity, ensureSchema } from './file-identity.js';
import { isBusy, memoryError } from './sqlite/sqlite-errors.js';
import { TenantRows } from './tenant-rows.js';

export interface FileOptions {
  readonly path: string;
  readonly collection: Collection;
  /** How long to wait for another process that holds the lock, in ms. */
  readonly lockWaitMs: number;
  /** Beyond it writes are refused with MEMORY_FULL; null: as large as the disk. */
  readonly sizeMaxMiB: number | null;
}

/** A try blocks the event loop for so long at most; between tries it runs. */
const TRY_MS = 20;
const RETRY_MS_MAX = 50;

/**
 * One connection to the file, and transactions on it.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL, MEMORY_VERSION; a transaction that throws leaves nothing.
 */
export class MemoryFile {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #options: FileOptions;

  private constructor(db: DatabaseSync, options: FileOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** Creates the file where there is none; any number of processes may do so at once. */
  static async open(options: FileOptions): Promise<MemoryFile> {
    return patiently(options, () => {
      createWithParents(options.path);
      const db = new DatabaseSync(options.path, { allowExtension: true, timeout: TRY_MS });
      try {
        configure(db, options);
        ensureSchema(db, options.path, options.collection);
        return new MemoryFile(db, options);
      } catch (error) {
        db.close();
        throw error;
      }
    });
  }

  /** One snapshot for everything that `work` reads. */
  async read<T>(scope: ReadScope, work: (rows: TenantRows) => T): Promise<T> {
    return patiently(this.#options, () => this.#transaction('BEGIN', () => work(new TenantRows(this.#prepare, scope, false))));
  }

  /** All or nothing, and on disk when it returns. `work` may run again when the lock was busy. */
  async write<T>(scope: ReadScope, work: (rows: TenantRows) => T): Promise<T> {
    return patiently(this.#options, () => this.#transaction('BEGIN IMMEDIATE', () => work(new TenantRows(this.#prepare, scope, true))));
  }

  /** Reads from the file, and makes sure that it is still the one that was opened. */
  async check(): Promise<void> {
    const { path, collection } = this.#options;
    if (!existsSync(path))
      throw new EtudeError('MEMORY_UNAVAILABLE', `the memory file ${path} is gone; restore it, then restart this service`);
    await patiently(this.#options, () => checkIdentity(this.#db, path, collection));
  }

  close(): void {
    this.#statements.clear();
    if (this.#db.isOpen) this.#db.close();
  }

  readonly #prepare = (sql: string): StatementSync => {
    const statement = this.#statements.get(sql) ?? this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  };

  #transaction<T>(begin: string, work: () => T): T {
    this.#requireOpen();
    this.#db.exec(begin);
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      // SQLite rolls back by itself on some errors, such as a full disk.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #requireOpen(): void {
    if (!this.#db.isOpen) throw new EtudeError('MEMORY_UNAVAILABLE', `the memory file ${this.#options.path} was closed by this process`);
  }
}

/** Tries again while another process holds the lock, for a bounded time and without blocking the event loop for long. */
async function patiently<T>({ path, lockWaitMs }: FileOptions, work: () => T): Promise<T> {
  const deadline = performance.now() + lockWaitMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw memoryError(error, path);
    }
    await sleep(waitMs);
  }
}

/** Only its owner may read it: it holds what tenants taught the agents. */
function createWithParents(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
}

function configure(db: DatabaseSync, { path, sizeMaxMiB }: FileOptions): void {
  loadVectors(db, path);
  const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  if (mode !== 'wal') {
    throw new EtudeError(
      'MEMORY_UNAVAILABLE',
      `the memory file ${path} is on a file system without shared memory (journal mode ${String(mode)}); put it on a local disk`,
    );
  }
  db.exec('PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000');
  const pageSize = Number(db.prepare('PRAGMA page_size').get()?.page_size);
  if (sizeMaxMiB !== null) db.exec(`PRAGMA max_page_count = ${Math.ceil((sizeMaxMiB * 1_048_576) / pageSize)}`);
}

function loadVectors(db: DatabaseSync, path: string): void {
  try {
    loadVectorSearch(db);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new EtudeError(
      'MEMORY_UNAVAILABLE',
      `vector search for ${path} cannot be loaded; run npm ci on this machine (sqlite-vec: ${reason})`,
      {},
      { cause },
    );
  }
  db.enableLoadExtension(false);
}
