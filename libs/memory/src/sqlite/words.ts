import type { MemoryLayer } from '@etude/contracts/task';
import { bm25Weight, COUNT_MAX, idf, queryTerms, type TermCounts } from '@etude/domain/retrieval/words';
import type { Condition } from './record-rows.js';
import { COUNT_COLUMNS } from './store-schema.js';
import type { TenantRows, Value } from './tenant-rows.js';

/** Searches rare words first, up to this many occurrences. Frequent words cost most and tell least. */
const OCCURRENCES_MAX = 4_000;

/**
 * Insert statements by the highest count of a word. Each statement leaves out the columns of higher counts, since empty columns cost as
 * much as full ones. VALUES instead of SELECT, because FTS5 writes a segment at each statement that might insert several rows.
 */
const INSERT_WORDS = COUNT_COLUMNS.map((_, i) => {
  const used = COUNT_COLUMNS.slice(0, i + 1);
  return `INSERT INTO record_words (rowid, ${used.join(', ')})
    VALUES (:id, ${used.map((name) => `replace(:${name}, ' ', ' ' || :tenant)`).join(', ')})`;
});

/** The statement puts the tenant's number before each word. */
export function insertWords(rows: TenantRows, layer: MemoryLayer, id: number, { counts }: TermCounts): void {
  const columns = Array<string>(Math.min(Math.max(...counts.values()), COUNT_MAX)).fill('');
  for (const [word, count] of counts) columns[Math.min(count, COUNT_MAX) - 1] += ` ${marked(layer, word)}`;
  const values: Record<string, Value> = { id };
  columns.forEach((words, i) => (values[`c${i + 1}`] = words));
  rows.run(INSERT_WORDS[columns.length - 1] ?? '', values);
}

export function deleteWords(rows: TenantRows, id: number): void {
  rows.run('DELETE FROM record_words WHERE rowid = :id AND :tenant IS NOT NULL', { id });
}

export interface Worded {
  readonly id: number;
  readonly bm25: number;
  readonly createdAt: number;
}

export interface WordsQuery {
  readonly layer: MemoryLayer;
  readonly text: string;
  /** Number of the tenant's records in the layer that have words. */
  readonly worded: number;
  readonly limit: number;
}

/**
 * The `limit` best matches of the words and the condition, best first, and all others that score as high as the last of these. Uses the tenant's own
 * word counts, because FTS5's bm25() would use the counts of all tenants together.
 */
export function searchWords(rows: TenantRows, { layer, text, worded, limit }: WordsQuery, condition: Condition): Worded[] {
  const terms = tellingTerms(rows, { layer, text, worded });
  const weights = [...terms.values()];
  const found = new Map<number, { id: number; bm25: number; createdAt: number }>();
  for (const [place, id, column, words, createdAt] of occurrences(rows, [...terms.keys()], condition)) {
    let known = found.get(id);
    if (known === undefined) found.set(id, (known = { id, bm25: 0, createdAt }));
    known.bm25 += (weights[place] ?? 0) * bm25Weight(Number(column.slice(1)), words);
  }
  const best = atLeastTheLast([...found.values()], limit).toSorted((a, b) => b.bm25 - a.bm25 || b.createdAt - a.createdAt);
  const last = best[limit - 1];
  return last === undefined ? best : best.filter((one, i) => i < limit || (one.bm25 === last.bm25 && one.createdAt === last.createdAt));
}

/** Keeps the `limit` best records and all that score as high as the last of them. Sorts plain numbers, which is faster than sorting records. */
function atLeastTheLast(found: readonly Worded[], limit: number): readonly Worded[] {
  const last = Float64Array.from(found, ({ bm25 }) => bm25).toSorted()[found.length - limit];
  return last === undefined ? found : found.filter(({ bm25 }) => bm25 >= last);
}

/** The weights of the text's rarest words that the tenant has in this layer, by word. */
function tellingTerms(rows: TenantRows, { layer, text, worded }: Omit<WordsQuery, 'limit'>): Map<string, number> {
  const terms = queryTerms(text).map((term) => marked(layer, term));
  if (terms.length === 0) return new Map();
  const found = rows.all<{ term: string; records: number }>(
    'SELECT value AS term, doc AS records FROM json_each(:terms) CROSS JOIN record_words_row ON term = :tenant || value',
    { terms: JSON.stringify(terms) },
  );
  let read = 0;
  const telling = found
    .toSorted((a, b) => a.records - b.records)
    .filter(({ records }, i) => {
      read += records;
      return i === 0 || read <= OCCURRENCES_MAX;
    });
  return new Map(telling.map(({ term, records }) => [term, idf(worded, records)]));
}

type Occurrence = readonly [place: number, id: number, column: string, words: number, createdAt: number];

/** Returns tuples, because making thousands of objects takes as long as finding the rows. */
function occurrences(rows: TenantRows, terms: readonly string[], { sql, values }: Condition): Occurrence[] {
  if (terms.length === 0) return [];
  return rows.tuples<Occurrence>(
    `SELECT json_each.key, doc, col, record.words, record.created_at
     FROM json_each(:terms) CROSS JOIN record_words_instance ON term = :tenant || value CROSS JOIN record ON record.id = doc
     WHERE record.tenant = :tenant${sql}`,
    { ...values, terms: JSON.stringify(terms) },
  );
}

/** Prefixes a word with its layer's letter, which keeps the layers' word lists apart. Words hold only letters, marks and digits. */
function marked(layer: MemoryLayer, word: string): string {
  return `${layer.charAt(0)}${word}`;
}
