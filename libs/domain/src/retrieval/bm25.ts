import { queryWordsOf, STOP_WORDS, wordsOf } from './words.js';

/** Parameters of Okapi BM25, at their customary values. */
const K1 = 1.2;
const B = 0.75;
/**
 * The usual length of a text, in words. It is a constant rather than the average of the stored texts, so that a weight depends on its
 * record alone. The weight can then be stored with the record and stays valid when others come and go.
 */
const USUAL_WORDS = 64;
/** Occurrences beyond this are not counted: at 8 the weight has reached at least three quarters of its maximum. */
export const COUNT_MAX = 8;
const QUERY_TERMS_MAX = 32;

/** The counted words of a record's searchable texts, all together. */
export interface TermCounts {
  /** How often each word occurs. */
  readonly counts: ReadonlyMap<string, number>;
  /** Number of words, repeats included. */
  readonly words: number;
}

export function termCounts(texts: readonly string[]): TermCounts {
  const counts = new Map<string, number>();
  let words = 0;
  for (const text of texts) {
    for (const word of wordsOf(text)) {
      counts.set(word.text, (counts.get(word.text) ?? 0) + 1);
      words += 1;
    }
  }
  return { counts, words };
}

/** The BM25 weight of a word that occurs `count` times in a record of `words` words, before it is multiplied by the word's `idf`. */
export function bm25Weight(count: number, words: number): number {
  const counted = Math.min(count, COUNT_MAX);
  return (counted * (K1 + 1)) / (counted + K1 * (1 - B + (B * words) / USUAL_WORDS));
}

/** How rare a word is. `n`: records with words in the tenant's layer; `df`: records that have this word. */
export function idf(n: number, df: number): number {
  return Math.log(1 + (n - df + 0.5) / (df + 0.5));
}

/** The words to search for, each once. Stop words are used only if there are no others. */
export function queryTerms(text: string): readonly string[] {
  const words = [...new Set(queryWordsOf(text).map((word) => word.text))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length > 0 ? telling : words).slice(0, QUERY_TERMS_MAX);
}
