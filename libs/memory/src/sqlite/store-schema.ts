import { MEMORY_FILE } from '@etude/contracts/memory-file';
import { COUNT_MAX } from '@etude/domain/retrieval/bm25';
import { RECORD_TEXTS_MAX } from '../record-store.js';
import { CODE_BITS } from './vector-code.js';

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
