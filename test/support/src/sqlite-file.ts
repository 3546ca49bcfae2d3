import { execFileSync } from 'node:child_process';

const PROGRAM = 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.close()';

/** Writes a file by SQLite, for packages that may not import SQLite. */
export function writeSqliteFile(path: string, sql: string): void {
  execFileSync('/usr/bin/python3', ['-c', PROGRAM, path, sql]);
}
