import { EtudeError } from '@etude/contracts/errors';

/** Primary result codes of SQLite; https://www.sqlite.org/rescode.html */
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;
/** The index of the write-ahead log couldn't grow: in practice a full disk. */
const SQLITE_IOERR_SHMSIZE = SQLITE_IOERR | (19 << 8);

const WAYS_OUT: Readonly<Record<number, string>> = {
  [SQLITE_BUSY]: 'was locked by another process for too long; find and stop the process that holds the lock',
  [SQLITE_LOCKED]: 'was locked by another process for too long; find and stop the process that holds the lock',
  [SQLITE_READONLY]: 'cannot be written; give this process the right to write the file and its directory',
  [SQLITE_IOERR]: 'cannot be read or written; check the disk it is on',
  [SQLITE_CORRUPT]: 'is damaged; stop the services and restore it from a backup, or move it away to start with an empty one',
  [SQLITE_CANTOPEN]: 'cannot be opened; check that its directory exists and that this process may write there',
  [SQLITE_NOTADB]: 'is not a memory file; name another path, or move the file away',
};

interface SqliteFailure {
  readonly errcode: number;
  readonly message: string;
}

/** Turns errors of SQLite or the file system into one that names the file and the way out. Other errors pass unchanged. */
export function memoryError(error: unknown, path: string): unknown {
  if (isSqliteFailure(error)) return fromSqlite(error, path);
  const { code } = error as { code?: unknown };
  if (code === 'ENOSPC' || code === 'EDQUOT') return full(path, error);
  if (error instanceof EtudeError || !(error instanceof Error) || typeof (error as NodeJS.ErrnoException).syscall !== 'string')
    return error;
  return new EtudeError('MEMORY_UNAVAILABLE', `the memory file ${path} cannot be opened: ${error.message}`, {}, { cause: error });
}

export function isBusy(error: unknown): boolean {
  return isSqliteFailure(error) && [SQLITE_BUSY, SQLITE_LOCKED].includes(error.errcode & 0xff);
}

function fromSqlite(error: SqliteFailure, path: string): EtudeError {
  const primary = error.errcode & 0xff;
  if (primary === SQLITE_FULL || error.errcode === SQLITE_IOERR_SHMSIZE) return full(path, error);
  const way = WAYS_OUT[primary];
  if (way === undefined) return new EtudeError('INTERNAL', `SQLite refused a statement on ${path}: ${error.message}`, {}, { cause: error });
  return new EtudeError('MEMORY_UNAVAILABLE', `the memory file ${path} ${way} (SQLite: ${error.message})`, {}, { cause: error });
}

function full(path: string, cause: unknown): EtudeError {
  const message = `there is no room left for the memory file ${path}; free space on its disk, or raise its size limit. Nothing of this write was kept, and it can be repeated`;
  return new EtudeError('MEMORY_FULL', message, {}, { cause });
}

function isSqliteFailure(error: unknown): error is SqliteFailure {
  return typeof (error as { errcode?: unknown } | null)?.errcode === 'number';
}
