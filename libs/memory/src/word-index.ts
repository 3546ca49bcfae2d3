import { STOP_WORDS, queryWordsOf, wordsOf } from '@etude/domain/retrieval/words';
import type { Layer } from './search-index.js';
import type { TenantRows } from './tenant-rows.js';

/** Okapi BM25; the customary values. */
const K1 = 1.2;
const B = 0.75;
const QUERY_WORDS_MAX = 64;
/** Rare words first, until so many occurrences were read: frequent ones cost most and tell least. */
const OCCURRENCES_MAX = 4_000;

interface Term {
  readonly word: string;
  readonly entries: number;
}

/** Adds the words of an entry; answers how many. The tenant's number is put before each by the statement itself. */
export function insertWords(rows: TenantRows, layer: Layer, id: number, text: string): number {
  const words = wordsOf(text).map((word) => ` ${layer.charAt(0)}${word.text}`);
  rows.run("INSERT INTO entry_words (rowid, words) VALUES (:id, replace(:words, ' ', ' ' || :tenant))", { id, words: words.join('') });
  rows.run(
    `INSERT INTO layer_size (tenant, layer, entries, words) VALUES (:tenant, :layer, 1, :words)
     ON CONFLICT DO UPDATE SET entries = entries + 1, words = words + :words`,
    { layer, words: words.length },
  );
  return words.length;
}

/**
 * Entries that share words with a text, best first, with their BM25 scores.
 *
 * Computed here from the tenant's own word lists, not with FTS5's bm25(), whose statistics would be those of all tenants.
 */
export function searchWords(rows: TenantRows, layer: Layer, text: string, limit: number): Map<number, number> {
  const size = rows.all<{ entries: number; words: number }>('SELECT entries, words FROM layer_size WHERE tenant = :tenant AND layer = :layer', { layer })[0];
  const scores = new Map<number, number>();
  if (size === undefined) return scores;
  const averageWords = Math.max(1, size.words / size.entries);
  for (const term of tellingTerms(rows, layer, text)) {
    const idf = Math.log(1 + (size.entries - term.entries + 0.5) / (term.entries + 0.5));
    for (const { id, count, words } of occurrences(rows, term.word)) {
      const gain = (idf * count * (K1 + 1)) / (count + K1 * (1 - B + (B * words) / averageWords));
      scores.set(id, (scores.get(id) ?? 0) + gain);
    }
  }
  return new Map([...scores].toSorted((a, b) => b[1] - a[1] || b[0] - a[0]).slice(0, limit));
}

/** The rarest words of the text that the tenant has in this layer. */
function tellingTerms(rows: TenantRows, layer: Layer, text: string): Term[] {
  const terms = queryTerms(text)
    .map((word) => ({ word: `${layer.charAt(0)}${word}`, entries: entriesWith(rows, `${layer.charAt(0)}${word}`) }))
    .filter((term) => term.entries > 0)
    .toSorted((a, b) => a.entries - b.entries);
  let read = 0;
  return terms.filter((term, i) => {
    read += term.entries;
    return i === 0 || read <= OCCURRENCES_MAX;
  });
}

/** Stop words only where there is nothing else. */
function queryTerms(text: string): string[] {
  const words = [...new Set(queryWordsOf(text).map((word) => word.text))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length > 0 ? telling : words).slice(0, QUERY_WORDS_MAX);
}

function entriesWith(rows: TenantRows, word: string): number {
  return rows.all<{ doc: number }>('SELECT doc FROM entry_words_row WHERE term = :tenant || :word', { word })[0]?.doc ?? 0;
}

function occurrences(rows: TenantRows, word: string) {
  return rows.all<{ id: number; count: number; words: number }>(
    `SELECT entry.id AS id, count(*) AS count, word_count AS words
     FROM entry_words_instance JOIN entry ON entry.id = entry_words_instance.doc
     WHERE term = :tenant || :word AND tenant = :tenant AND shown = 1${rows.within} GROUP BY entry.id`,
    { word },
  );
}
