import { execFileSync } from 'node:child_process';

const PROGRAM = 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.close()';

/** A file that SQLite itself has written, for packages that may not use it. */
export function writeSqliteFile(path: string, sql: string): void {
  execFileSync('/usr/bin/python3', ['-c', PROGRAM, path, sql]);
}
