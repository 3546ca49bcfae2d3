import { EtudeError } from '@etude/contracts/errors';
import type { DatabaseSync } from 'node:sqlite';
import { APPLICATION_ID, createSchema, SCHEMA_VERSION } from './schema.js';

/** What the vectors in the file were made with. */
export interface Collection {
  readonly model: string;
  readonly dimension: number;
}

/** Creates the tables in an empty file, in one transaction; otherwise makes sure that the file is one that we can use. */
export function ensureSchema(db: DatabaseSync, path: string, collection: Collection): void {
  if (isEmpty(db)) createOnce(db, collection);
  checkIdentity(db, path, collection);
}

/** @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION */
export function checkIdentity(db: DatabaseSync, path: string, collection: Collection): void {
  if (pragma(db, 'application_id') !== APPLICATION_ID) {
    throw new EtudeError('MEMORY_UNAVAILABLE', `${path} is a database of another program; name another path for the memory file`);
  }
  checkVersion(pragma(db, 'user_version'), path);
  checkCollection(db, path, collection);
}

function createOnce(db: DatabaseSync, { model, dimension }: Collection): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    if (isEmpty(db)) {
      db.exec(createSchema(dimension));
      const insert = db.prepare('INSERT INTO meta (key, value) VALUES (?, ?)');
      insert.run('embedder.model', model);
      insert.run('embedder.dimension', String(dimension));
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function checkVersion(version: number, path: string): void {
  if (version === SCHEMA_VERSION) return;
  const way = version > SCHEMA_VERSION ? 'upgrade this service, or name another path' : 'name another path, or restore a newer backup';
  throw new EtudeError('MEMORY_VERSION', `the memory file ${path} has layout ${version} and this service reads ${SCHEMA_VERSION}; ${way}`);
}

function checkCollection(db: DatabaseSync, path: string, { model, dimension }: Collection): void {
  const stored = Object.fromEntries(
    db
      .prepare('SELECT key, value FROM meta')
      .all()
      .map((row) => [row.key, row.value]),
  );
  const storedModel = String(stored['embedder.model']);
  const storedDimension = Number(stored['embedder.dimension']);
  if (storedModel === model && storedDimension === dimension) return;
  throw new EtudeError(
    'MEMORY_VERSION',
    `the memory file ${path} was built with the embedder ${storedModel} (${storedDimension} dimensions), but ${model} (${dimension}) is configured; ` +
      `vectors of two models cannot be compared. Configure ${storedModel} again, or name another path to start with an empty memory`,
  );
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
