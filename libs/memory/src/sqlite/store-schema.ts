import { RECORD_TEXTS_MAX, type StoreOptions, type VectorModel } from '../record-store.js';
import { requireReadable } from '../vector-models.js';
import { CODE_BITS } from './vector-code.js';
import { EtudeError } from '@etude/contracts/errors';
import { MEMORY_FILE, memoryFileTrouble } from '@etude/contracts/memory-file';
import { COUNT_MAX } from '@etude/domain/retrieval/bm25';
import type { DatabaseSync } from 'node:sqlite';

/** Raised with every change below; a file of another version is refused. */
export const SCHEMA_VERSION = MEMORY_FILE.layout;
/** "Etud": marks the file as ours. */
export const APPLICATION_ID = MEMORY_FILE.applicationId;

/** One column per number of occurrences, so that a word list says how often the word is in each record. */
export const COUNT_COLUMNS = Array.from({ length: COUNT_MAX }, (_, i) => `c${i + 1}`);

/** Texts that search finds one record by, at most. */
export const TEXTS_MAX = RECORD_TEXTS_MAX;

/**
 * Every table with data of a tenant has its number in `tenant`. `agent` and `user` are numbers of `principal`; user 0 is none.
 * Numbers are never given twice: word lists begin with the tenant's.
 *
 * `record` is narrow, since ranking and filters read many rows; what is shown is in `record_body` under the same id.
 * `record_words` has one row per record with words, under its id; `words.ts` puts them together, so the plainest tokenizer does. `embedding` notes per model that a record's texts were embedded
 * and how many have a vector; the vectors are in `vectorTable`, their codes in `codeTable`, both under `record * TEXTS_MAX + place of the text`.
 */
export const CREATE_SCHEMA = `
CREATE TABLE tenant (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
CREATE TABLE principal (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (tenant, kind, name)
);
CREATE TABLE model (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, ready INTEGER NOT NULL
);
CREATE TABLE record (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, kind INTEGER NOT NULL, record_key TEXT NOT NULL,
  agent INTEGER NOT NULL, user INTEGER NOT NULL, created_at INTEGER NOT NULL, worth REAL NOT NULL, shown INTEGER NOT NULL,
  revision INTEGER NOT NULL, texts INTEGER NOT NULL, words INTEGER NOT NULL, UNIQUE (tenant, kind, record_key)
);
CREATE INDEX record_by_time ON record (tenant, kind, created_at, record_key);
CREATE TABLE record_body (
  id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, fields TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, sources TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE TABLE record_field (
  tenant INTEGER NOT NULL, field INTEGER NOT NULL, value TEXT NOT NULL, record INTEGER NOT NULL,
  PRIMARY KEY (tenant, field, value, record)
) WITHOUT ROWID;
CREATE TABLE embedding (
  model INTEGER NOT NULL, record INTEGER NOT NULL, tenant INTEGER NOT NULL, vectors INTEGER NOT NULL, PRIMARY KEY (model, record)
) WITHOUT ROWID;
CREATE TABLE layer_size (
  tenant INTEGER NOT NULL, layer INTEGER NOT NULL, worded INTEGER NOT NULL, records INTEGER NOT NULL, texts INTEGER NOT NULL,
  PRIMARY KEY (tenant, layer)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE record_words USING fts5 (
  ${COUNT_COLUMNS.join(', ')}, content='', contentless_delete=1, detail=column, tokenize=ascii
);
INSERT INTO record_words (record_words, rank) VALUES ('automerge', 8);
CREATE VIRTUAL TABLE record_words_row USING fts5vocab (record_words, row);
CREATE VIRTUAL TABLE record_words_instance USING fts5vocab (record_words, instance);
`;

export const vectorTable = (model: number): string => `vector_${model}`;

export const codeTable = (model: number): string => `vector_code_${model}`;

/**
 * A search goes through the codes, and compares the vectors of the nearest of them. Vectors are of unit length: their distances order
 * them as cosines do, and sqlite-vec computes those with the processor's wide instructions, which it does not for cosines.
 *
 * Chunks of codes are per tenant and layer; small ones keep small tenants small (128 codes are 16 KiB). `kind` is negative for what is
 * not shown, so that one look answers both. Without the index a search goes through the chunks of all tenants.
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

type Model = StoreOptions['model'];

/** Creates the tables in an empty file, in one transaction; otherwise makes sure that the file is one that we can use. */
export function ensureSchema(db: DatabaseSync, path: string, model: Model): void {
  if (isEmpty(db)) createOnce(db, model);
  checkIdentity(db, path, model);
}

/** @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_VERSION */
export function checkIdentity(db: DatabaseSync, path: string, model: Model): void {
  const applicationId = pragma(db, 'application_id');
  const trouble = memoryFileTrouble(path, { applicationId, layout: pragma(db, 'user_version') });
  if (trouble !== null) throw new EtudeError('MEMORY_VERSION', trouble);
  if (applicationId !== APPLICATION_ID)
    throw new EtudeError('MEMORY_UNAVAILABLE', `${path} is a database of another program; name another path for the memory file`);
  requireReadable(db.prepare(MODELS).all() as unknown as VectorModel[], model, `the memory file ${path}`);
}

/** Every vector model of the file, as `VectorModel` with its number. */
export const MODELS = "SELECT id, name, dimension, iif(ready = 1, 'ready', 'building') AS state FROM model";

function createOnce(db: DatabaseSync, { name, dimension }: Model): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    if (isEmpty(db)) {
      db.exec(CREATE_SCHEMA);
      const insert = db.prepare('INSERT INTO model (name, dimension, ready) VALUES (?, ?, 1)');
      db.exec(createVectors(Number(insert.run(name, dimension).lastInsertRowid)));
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`);
    }
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function pragma(db: DatabaseSync, name: 'application_id' | 'user_version'): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
