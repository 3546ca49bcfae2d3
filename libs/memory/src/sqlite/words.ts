import type { MemoryLayer } from '@etude/contracts/task';
import { bm25Weight, COUNT_MAX, idf, queryTerms, type TermCounts } from '@etude/domain/retrieval/bm25';
import { type Condition, layerCode } from './record-rows.js';
import { COUNT_COLUMNS } from './store-schema.js';
import type { TenantRows, Value } from './tenant-rows.js';

/** Rare words first, until so many occurrences were read: frequent ones cost most and tell least. */
const OCCURRENCES_MAX = 4_000;

/**
 * By how often the most frequent word is there: columns that stay empty cost as much as others. With VALUES and not SELECT, since
 * FTS5 writes what it has gathered at every statement that might insert several rows.
 */
const INSERT_WORDS = COUNT_COLUMNS.map((_, i) => {
  const used = COUNT_COLUMNS.slice(0, i + 1);
  return `INSERT INTO record_words (rowid, ${used.join(', ')})
    VALUES (:id, ${used.map((name) => `replace(:${name}, ' ', ' ' || :tenant)`).join(', ')})`;
});

/** Adds the words of a record. The tenant's number is put before each by the statement itself. */
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

/** A record that shares telling words with a text, and how well they fit. */
export interface Worded {
  readonly id: number;
  readonly bm25: number;
  readonly createdAt: number;
}

/**
 * The best `limit` records that a condition on `record` lets through, best first, and those that are as good as the last.
 *
 * Counted in the tenant's own word lists. FTS5's bm25() would do it with the statistics of all tenants together.
 */
export function searchWords(rows: TenantRows, layer: MemoryLayer, text: string, condition: Condition, limit: number): Worded[] {
  const terms = tellingTerms(rows, layer, text);
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

/** All that may be among the best, of thousands: numbers alone are sorted fast. */
function atLeastTheLast(found: readonly Worded[], limit: number): readonly Worded[] {
  const last = Float64Array.from(found, ({ bm25 }) => bm25).toSorted()[found.length - limit];
  return last === undefined ? found : found.filter(({ bm25 }) => bm25 >= last);
}

/** How telling each of the rarest words of the text is that the tenant has in this layer. */
function tellingTerms(rows: TenantRows, layer: MemoryLayer, text: string): Map<string, number> {
  const terms = queryTerms(text).map((term) => marked(layer, term));
  if (terms.length === 0) return new Map();
  const { worded = 0 } =
    rows.all<{ worded: number }>('SELECT worded FROM layer_size WHERE tenant = :tenant AND layer = :layer', {
      layer: layerCode(layer),
    })[0] ?? {};
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

/** As tuples: there are thousands, and as objects they take as long to make as to find. */
function occurrences(rows: TenantRows, terms: readonly string[], { sql, values }: Condition): Occurrence[] {
  if (terms.length === 0) return [];
  return rows.tuples<Occurrence>(
    `SELECT json_each.key, doc, col, record.words, record.created_at
     FROM json_each(:terms) CROSS JOIN record_words_instance ON term = :tenant || value CROSS JOIN record ON record.id = doc
     WHERE record.tenant = :tenant${sql}`,
    { ...values, terms: JSON.stringify(terms) },
  );
}

/** Keeps the layers' word lists apart; words hold only letters, marks and digits. */
function marked(layer: MemoryLayer, word: string): string {
  return `${layer.charAt(0)}${word}`;
}
