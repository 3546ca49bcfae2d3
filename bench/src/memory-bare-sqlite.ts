import { statSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { load } from 'sqlite-vec';
import { type DataQuery, type DataRecord, DIMENSION } from './memory-data.js';

const LIMIT = 10;
/** Number of hits in each of the two fused lists. Etude asks for as many. */
const PLACES = 40;

const SCHEMA = `
CREATE TABLE doc (id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, worth REAL NOT NULL, created_at INTEGER NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE doc_vector USING vec0 (
  id INTEGER PRIMARY KEY, tenant INTEGER PARTITION KEY, embedding float[${DIMENSION}] distance_metric=cosine, worth FLOAT
);
CREATE VIRTUAL TABLE doc_words USING fts5 (tenant, text, content='', contentless_delete=1);`;

/**
 * A baseline: the store that one would write by hand. It has sqlite-vec with the tenant as partition and the worth beside the vector, FTS5
 * with the tenant as a word, and a table of texts. It has no ownership, history, ranking or explanations. Durability and cache are Etude's.
 */
export class BareSqlite {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #insert: readonly [doc: StatementSync, vector: StatementSync, words: StatementSync];
  readonly #nearest: StatementSync;
  readonly #worded: StatementSync;
  readonly #texts: StatementSync;

  constructor(path: string) {
    this.#path = path;
    this.#db = new DatabaseSync(path, { allowExtension: true });
    load(this.#db);
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000');
    this.#db.exec(SCHEMA);
    const prepare = (sql: string) => this.#db.prepare(sql);
    this.#insert = [
      prepare('INSERT INTO doc (id, tenant, worth, created_at, text) VALUES (?, ?, ?, ?, ?)'),
      prepare('INSERT INTO doc_vector (id, tenant, embedding, worth) VALUES (?, ?, ?, ?)'),
      prepare('INSERT INTO doc_words (rowid, tenant, text) VALUES (?, ?, ?)'),
    ];
    this.#nearest = prepare(
      'SELECT id, distance FROM doc_vector WHERE embedding MATCH ? AND k = ? AND tenant = ? AND worth >= CAST(? AS REAL)',
    );
    this.#worded = prepare('SELECT rowid AS id FROM doc_words WHERE doc_words MATCH ? ORDER BY rank LIMIT ?');
    this.#texts = prepare('SELECT doc.id AS id, text, worth, created_at FROM json_each(?) CROSS JOIN doc ON doc.id = value');
  }

  /** One transaction. Writes all words last, because FTS5 flushes its buffer whenever another table is written in between. */
  insert(records: readonly DataRecord[]): void {
    const [doc, vector, words] = this.#insert;
    this.#db.exec('BEGIN IMMEDIATE');
    for (const record of records) {
      const id = BigInt(record.id);
      const tenant = BigInt(record.tenant);
      doc.run(id, tenant, record.worth, BigInt(record.createdAt), record.text);
      vector.run(id, tenant, bytesOf(record.vector), record.worth);
    }
    for (const { id, tenant, text } of records) words.run(BigInt(id), `t${tenant}`, text);
    this.#db.exec('COMMIT');
  }

  searchDense({ vector, tenant }: DataQuery): readonly unknown[] {
    return this.#load(this.#dense(vector, tenant, LIMIT));
  }

  searchHybrid({ vector, tenant, text }: DataQuery): readonly unknown[] {
    const scores = new Map<number, number>();
    const words = text.split(' ').map((word) => `"${word}"`);
    const worded = this.#worded.all(`tenant : t${tenant} AND text : (${words.join(' OR ')})`, BigInt(PLACES)).map(({ id }) => Number(id));
    for (const list of [this.#dense(vector, tenant, PLACES), worded])
      list.forEach((id, place) => scores.set(id, (scores.get(id) ?? 0) + 1 / (60 + place)));
    const best = [...scores].toSorted((a, b) => b[1] - a[1]).slice(0, LIMIT);
    return this.#load(best.map(([id]) => id));
  }

  diskBytes(): number {
    return ['', '-wal'].reduce((sum, suffix) => sum + (statSync(`${this.#path}${suffix}`, { throwIfNoEntry: false })?.size ?? 0), 0);
  }

  close(): void {
    this.#db.close();
  }

  #dense(vector: Float32Array, tenant: number, k: number): number[] {
    return this.#nearest.all(bytesOf(vector), BigInt(k), BigInt(tenant), 0).map(({ id }) => Number(id));
  }

  #load(ids: readonly number[]): readonly unknown[] {
    return this.#texts.all(JSON.stringify(ids));
  }
}

function bytesOf(vector: Float32Array): Uint8Array {
  return new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
}
