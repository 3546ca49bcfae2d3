import { readFileSync } from 'node:fs';
import type { Model, VectorModel } from '../record-store.js';
import { requireReadable } from '../vector-models.js';
import { CODE_BITS } from './vector-code.js';
import { EtudeError } from '@etude/contracts/errors';
import { COUNT_MAX } from '@etude/domain/retrieval/words';
import type { DatabaseSync } from 'node:sqlite';

/** Raised with every change of the schema below. A file of another version is refused. */
const SCHEMA_VERSION = 1;
/** "Etu1" in ASCII, which marks the file as ours. */
const APPLICATION_ID = 0x4574_7531;

/** One column per number of occurrences, so that a word list shows how often each record has the word. */
export const COUNT_COLUMNS = Array.from({ length: COUNT_MAX }, (_, i) => `c${i + 1}`);

/** Read from `src`, because the compiler copies no SQL. The path is the same from `dist`. */
const CREATE_SCHEMA = readFileSync(new URL('../../src/sqlite/schema.sql', import.meta.url), 'utf8');

export const vectorTable = (model: number): string => `vector_${model}`;

export const codeTable = (model: number): string => `vector_code_${model}`;

/**
 * A search scans the codes, then compares the vectors of the nearest codes. Vectors have unit length, so their distances order them as
 * cosines do.
 *
 * Chunks of codes belong to one tenant and layer; small chunks keep small tenants small (128 codes are 16 KiB). `kind` is negative for
 * hidden records, so that one condition covers kind and visibility. Without the index a search would scan the chunks of all tenants.
 */
export function createVectors(model: number): string {
  return `
CREATE TABLE ${vectorTable(model)} (id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, embedding BLOB NOT NULL);
CREATE VIRTUAL TABLE ${codeTable(model)} USING vec0 (
  id INTEGER PRIMARY KEY, tenant INTEGER PARTITION KEY, layer INTEGER PARTITION KEY, code bit[${CODE_BITS}],
  agent INTEGER, user INTEGER, kind INTEGER, worth FLOAT, created_at INTEGER, chunk_size=128
);
CREATE INDEX ${codeTable(model)}_by_layer ON ${codeTable(model)}_chunks (partition00, partition01)`;
}

export function dropVectors(model: number): string {
  return `DROP TABLE ${codeTable(model)}; DROP TABLE ${vectorTable(model)}`;
}

export function createSchema(db: DatabaseSync, { name, dimension }: Model): void {
  db.exec(CREATE_SCHEMA);
  const insert = db.prepare('INSERT INTO model (name, dimension, ready) VALUES (?, ?, 1)');
  db.exec(createVectors(Number(insert.run(name, dimension).lastInsertRowid)));
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
}

/** @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION */
export function checkIdentity(db: DatabaseSync, path: string, model: Model): void {
  if (pragma(db, 'application_id') !== APPLICATION_ID)
    throw new EtudeError('MEMORY_UNAVAILABLE', `${path} is a database of another program; name another path for the memory file`);
  const layout = pragma(db, 'user_version');
  if (layout !== SCHEMA_VERSION) {
    const message =
      `the memory file ${path} was written by a later version of Etude: it has layout ${layout}, and this version reads ${SCHEMA_VERSION}. ` +
      'The file was not changed. Stop every service that uses it, then install and start that later version; or name another file';
    throw new EtudeError('MEMORY_VERSION', message);
  }
  requireReadable(modelRows(db), model, `the memory file ${path}`);
}

export const MODELS = "SELECT id, name, dimension, iif(ready = 1, 'ready', 'building') AS state FROM model";

export interface ModelRow extends VectorModel {
  readonly id: number;
}

export function modelRows(db: DatabaseSync): ModelRow[] {
  return db.prepare(`${MODELS} ORDER BY id`).all() as unknown as ModelRow[];
}

export function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
