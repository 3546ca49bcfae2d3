import { STOP_WORDS, queryWordsOf, wordsOf } from '@etude/domain/retrieval/words';
import type { Layer } from './search-index.js';
import type { TenantRows } from './tenant-rows.js';

/** Okapi BM25; the customary values. */
const K1 = 1.2;
const B = 0.75;
const QUERY_WORDS_MAX = 32;
/** Rare words first, until so many occurrences were read: frequent ones cost most and tell least. */
const OCCURRENCES_MAX = 400;

/** Adds the words of an entry. The tenant's number is put before each by the statement itself. */
export function insertWords(rows: TenantRows, layer: Layer, id: number, text: string): void {
  const words = wordsOf(text).map((word) => ` ${layer.charAt(0)}${word.text}`);
  rows.run("INSERT INTO entry_words (rowid, words) VALUES (:id, replace(:words, ' ', ' ' || :tenant))", { id, words: words.join('') });
  rows.run(
    `INSERT INTO layer_size (tenant, layer, entries, words) VALUES (:tenant, :layer, 1, :words)
     ON CONFLICT DO UPDATE SET entries = entries + 1, words = words + :words`,
    { layer, words: words.length },
  );
  rows.run('UPDATE entry SET word_count = :count WHERE tenant = :tenant AND id = :id', { id, count: words.length });
}

/** How often the words of a query are in each entry, and what that says. */
export interface WordMatches {
  /** By entry: of each word that it has, how often, and how rare the word is. */
  readonly byEntry: ReadonlyMap<number, ReadonlyArray<{ idf: number; count: number }>>;
  readonly averageWords: number;
}

/**
 * Entries of the tenant that share telling words with a text.
 *
 * Counted in the tenant's own word lists. FTS5's bm25() would do it with the statistics of all tenants together.
 */
export function matchWords(rows: TenantRows, layer: Layer, text: string): WordMatches {
  const sizes = rows.all<{ entries: number; words: number }>(
    'SELECT entries, words FROM layer_size WHERE tenant = :tenant AND layer = :layer',
    { layer },
  );
  const { entries, words } = sizes[0] ?? { entries: 0, words: 0 };
  const byEntry = new Map<number, { idf: number; count: number }[]>();
  const frequencies = tellingWords(rows, layer, text);
  for (const { word, id, count } of occurrences(rows, [...frequencies.keys()])) {
    const having = frequencies.get(word) ?? 0;
    const idf = Math.log(1 + (entries - having + 0.5) / (having + 0.5));
    byEntry.set(id, [...(byEntry.get(id) ?? []), { idf, count }]);
  }
  return { byEntry, averageWords: Math.max(1, words / Math.max(1, entries)) };
}

/** BM25 of an entry of so many words. */
export function bm25Of({ byEntry, averageWords }: WordMatches, id: number, words: number): number {
  const norm = K1 * (1 - B + (B * words) / averageWords);
  return (byEntry.get(id) ?? []).reduce((sum, { idf, count }) => sum + (idf * count * (K1 + 1)) / (count + norm), 0);
}

/** The rarest words of the text that the tenant has in this layer, with the number of entries that have them. */
function tellingWords(rows: TenantRows, layer: Layer, text: string): Map<string, number> {
  const words = queryTerms(text).map((word) => `${layer.charAt(0)}${word}`);
  const found = rows.all<{ word: string; entries: number }>(
    'SELECT value AS word, doc AS entries FROM json_each(:words) CROSS JOIN entry_words_row ON term = :tenant || value',
    { words: JSON.stringify(words) },
  );
  let read = 0;
  const telling = found
    .toSorted((a, b) => a.entries - b.entries)
    .filter(({ entries }, i) => {
      read += entries;
      return i === 0 || read <= OCCURRENCES_MAX;
    });
  return new Map(telling.map(({ word, entries }) => [word, entries]));
}

/** Stop words only where there is nothing else. */
function queryTerms(text: string): string[] {
  const words = [...new Set(queryWordsOf(text).map((word) => word.text))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length > 0 ? telling : words).slice(0, QUERY_WORDS_MAX);
}

function occurrences(rows: TenantRows, words: readonly string[]) {
  return rows.all<{ word: string; id: number; count: number }>(
    `SELECT value AS word, doc AS id, count(*) AS count
     FROM json_each(:words) CROSS JOIN entry_words_instance ON term = :tenant || value GROUP BY key, doc`,
    { words: JSON.stringify(words) },
  );
}
