import { queryWordsOf, STOP_WORDS, wordsOf } from './words.js';

/** Okapi BM25; the customary values. */
const K1 = 1.2;
const B = 0.75;
/**
 * What counts as a text of usual length. A constant and not the average of what is stored, so that a weight depends on its
 * record alone: it can be stored with the record, and stays what it is when others come and go.
 */
const USUAL_WORDS = 64;
/** More occurrences say nothing that fewer did not: at 8 the weight has three quarters and more of what it can ever have. */
export const COUNT_MAX = 8;
const QUERY_TERMS_MAX = 32;

/** What is counted of a record's searchable texts, all together. */
export interface TermCounts {
  /** How often each word is in it. */
  readonly counts: ReadonlyMap<string, number>;
  /** How many words it has. */
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

/** What a word weighs in a record of `words` words that has it `count` times; to be multiplied by its `idf`. */
export function bm25Weight(count: number, words: number): number {
  const counted = Math.min(count, COUNT_MAX);
  return (counted * (K1 + 1)) / (counted + K1 * (1 - B + (B * words) / USUAL_WORDS));
}

/** How telling a word is. `n`: records of the tenant's layer that have a word, found or not; `df`: those that have this one. */
export function idf(n: number, df: number): number {
  return Math.log(1 + (n - df + 0.5) / (df + 0.5));
}

/** The words to look for, each once. Stop words only where there is nothing else. */
export function queryTerms(text: string): readonly string[] {
  const words = [...new Set(queryWordsOf(text).map((word) => word.text))];
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length > 0 ? telling : words).slice(0, QUERY_TERMS_MAX);
}
