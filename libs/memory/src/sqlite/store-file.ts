import { EtudeError } from '@etude/contracts/errors';
import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { load as loadVectorSearch } from 'sqlite-vec';
import { type Model, ownedBy, type Owners, type TenantView } from '../record-store.js';
import { checkIdentity, createSchema, isEmpty } from './store-schema.js';
import { TenantRows } from './tenant-rows.js';

export interface SqliteStoreOptions {
  readonly model: Model;
  /** The file and its directory are created if they don't exist. */
  readonly path: string;
  /** How long to wait for another process that holds the lock, in ms; default 30,000. */
  readonly lockWaitMs?: number;
  /** Largest file size. Larger writes are refused with MEMORY_FULL. Default: no limit but the disk. */
  readonly sizeMaxMiB?: number;
}

/** The time that another process may take to rewrite a large file. */
const LOCK_WAIT_MS = 30_000;
/** How long one try may block the event loop. */
const TRY_MS = 20;
const RETRY_MS_MAX = 50;
/** Limits the cache of prepared statements, since callers can send any number of different filters. */
const STATEMENTS_MAX = 300;

/** One connection to the file. @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL, MEMORY_VERSION; a transaction that throws is rolled back */
export class StoreFile {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #options: SqliteStoreOptions;
  readonly #identity: string | null;

  private constructor(db: DatabaseSync, options: SqliteStoreOptions) {
    this.#db = db;
    this.#options = options;
    this.#identity = identityOf(options.path);
  }

  get path(): string {
    return this.#options.path;
  }

  get lockWaitMs(): number {
    return this.#options.lockWaitMs ?? LOCK_WAIT_MS;
  }

  get where(): string {
    return `the memory file ${this.path}`;
  }

  /** Creates the file if there is none. Safe for several processes at once. */
  static async open(options: SqliteStoreOptions): Promise<StoreFile> {
    return patiently(options, () => {
      mkdirSync(dirname(options.path), { recursive: true });
      // Readable only by its owner, since it holds what tenants taught the agents.
      if (!existsSync(options.path)) closeSync(openSync(options.path, 'a', 0o600));
      const db = new DatabaseSync(options.path, { allowExtension: true, timeout: TRY_MS });
      try {
        configure(db, options);
        if (isEmpty(db)) transaction(db, 'BEGIN IMMEDIATE', () => isEmpty(db) && createSchema(db, options.model));
        checkIdentity(db, options.path, options.model);
        return new StoreFile(db, options);
      } catch (error) {
        db.close();
        throw error;
      }
    });
  }

  /** Everything that `work` reads comes from one snapshot. */
  async read<T>(view: TenantView, work: (rows: TenantRows) => T): Promise<T> {
    return this.#run('BEGIN', () => work(new TenantRows(this.#prepare, view)));
  }

  /** On disk when it returns, unless `unsynced`. `work` may run again if the lock was busy. `enrols`: gives a new tenant its number. */
  async write<T>(owners: Owners, work: (rows: TenantRows) => T, { enrols = false, unsynced = false } = {}): Promise<T> {
    return this.#run('BEGIN IMMEDIATE', () => work(new TenantRows(this.#prepare, ownedBy(owners), enrols)), unsynced);
  }

  /** Reads the rows of all tenants. For upkeep only, never to answer a caller. */
  async readWhole<T>(work: (db: DatabaseSync) => T): Promise<T> {
    return this.#run('BEGIN', () => work(this.#db));
  }

  async writeWhole<T>(work: (db: DatabaseSync) => T): Promise<T> {
    return this.#run('BEGIN IMMEDIATE', () => work(this.#db));
  }

  async check(): Promise<void> {
    const { path, model } = this.#options;
    this.#requireSame();
    await this.#run('BEGIN', () => checkIdentity(this.#db, path, model));
  }

  diskBytes(): number {
    return [this.path, `${this.path}-wal`].reduce((bytes, path) => bytes + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0);
  }

  close(): void {
    this.#statements.clear();
    if (this.#db.isOpen) this.#db.close();
  }

  readonly #prepare = (sql: string): StatementSync => {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear();
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  };

  async #run<T>(begin: Begin, work: () => T, unsynced = false): Promise<T> {
    return patiently(this.#options, () => {
      if (!this.#db.isOpen) throw new EtudeError('MEMORY_UNAVAILABLE', `${this.where} was closed by this process; open it again`);
      if (begin === 'BEGIN IMMEDIATE') this.#requireSame();
      // The write-ahead log is synced as a whole and recovered in order, so the next synced transaction also puts this transaction on disk.
      if (unsynced) this.#db.exec('PRAGMA synchronous = NORMAL');
      try {
        return transaction(this.#db, begin, work);
      } finally {
        if (unsynced) this.#db.exec('PRAGMA synchronous = FULL');
      }
    });
  }

  /** Writes to a deleted or replaced file would be lost when its last reader closes it. */
  #requireSame(): void {
    if (identityOf(this.path) === this.#identity) return;
    const message = `${this.where} is gone, or was replaced since it was opened; restore it, then restart all services, so that all open the same file`;
    throw new EtudeError('MEMORY_UNAVAILABLE', message);
  }
}

type Begin = 'BEGIN' | 'BEGIN IMMEDIATE';

function transaction<T>(db: DatabaseSync, begin: Begin, work: () => T): T {
  db.exec(begin);
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    // On some errors, such as a full disk, SQLite has already rolled back.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

/** Retries while another process holds the lock, up to `lockWaitMs`, without blocking the event loop for long. */
async function patiently<T>({ path, lockWaitMs = LOCK_WAIT_MS }: SqliteStoreOptions, work: () => T): Promise<T> {
  const deadline = performance.now() + lockWaitMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    try {
      return work();
    } catch (error) {
      if (codeOf(error) !== BUSY || performance.now() >= deadline) throw memoryError(error, path);
    }
    await sleep(waitMs);
  }
}

function configure(db: DatabaseSync, { path, sizeMaxMiB }: SqliteStoreOptions): void {
  loadVectorSearch(db);
  db.enableLoadExtension(false);
  const mode = db.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
  if (mode !== 'wal') {
    const message = `the memory file ${path} is on a file system without shared memory (journal mode ${String(mode)}); put it on a local disk`;
    throw new EtudeError('MEMORY_UNAVAILABLE', message);
  }
  db.exec('PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000');
  const pageSize = Number(db.prepare('PRAGMA page_size').get()?.page_size);
  if (sizeMaxMiB !== undefined) db.exec(`PRAGMA max_page_count = ${Math.ceil((sizeMaxMiB * 1_048_576) / pageSize)}`);
}

const BUSY = 5;

/** What happened and what to do, by SQLite's primary result code; https://www.sqlite.org/rescode.html */
const WAYS_OUT: Readonly<Record<number, string>> = {
  // SQLITE_BUSY, READONLY, IOERR
  [BUSY]: 'was locked by another process for too long; find and stop the process that holds the lock',
  8: 'cannot be written; give this process the right to write the file and its directory',
  10: 'cannot be read or written; check the disk it is on',
  // SQLITE_CORRUPT, CANTOPEN, NOTADB
  11: 'is damaged; stop the services and restore it from a backup, or move it away to start with an empty one',
  14: 'cannot be opened; check that its directory exists and that this process may write there',
  26: 'is not a memory file; name another path, or move the file away',
};

/** Codes of a full disk: SQLITE_FULL, SQLITE_IOERR_SHMSIZE (the log's index couldn't grow), and the file system's codes. */
const FULL: ReadonlySet<unknown> = new Set([13, 10 | (19 << 8), 'ENOSPC', 'EDQUOT']);

/** SQLite's primary result code; 0 for other errors. */
const codeOf = (error: unknown): number => ((error as { errcode?: number } | null)?.errcode ?? 0) & 0xff;

/** Turns errors of SQLite or the file system into an error that names the file and says what to do. Other errors are returned unchanged. */
export function memoryError(error: unknown, path: string): unknown {
  if (error instanceof EtudeError || !(error instanceof Error)) return error;
  const { errcode, code, syscall } = error as NodeJS.ErrnoException & { readonly errcode?: number };
  const made = (name: 'MEMORY_FULL' | 'MEMORY_UNAVAILABLE' | 'INTERNAL', message: string) =>
    new EtudeError(name, message, {}, { cause: error });
  if ([errcode, codeOf(error), code].some((one) => FULL.has(one))) {
    const message = `there is no room left for the memory file ${path}; free space on its disk, or raise its size limit, then repeat the write. Nothing of the write was stored`;
    return made('MEMORY_FULL', message);
  }
  const way = WAYS_OUT[codeOf(error)];
  if (way !== undefined) return made('MEMORY_UNAVAILABLE', `the memory file ${path} ${way} (SQLite: ${error.message})`);
  if (errcode !== undefined) return made('INTERNAL', `SQLite refused a statement on ${path}: ${error.message}`);
  return syscall === undefined ? error : made('MEMORY_UNAVAILABLE', `the memory file ${path} cannot be opened: ${error.message}`);
}
