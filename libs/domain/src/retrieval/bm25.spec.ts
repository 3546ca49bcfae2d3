import { describe, expect, it } from 'vitest';
import { bm25Weight, COUNT_MAX, idf, queryTerms, termCounts } from './bm25.js';

describe('bm25', () => {
  it('counts the words of all texts together', () => {
    const { counts, words } = termCounts(['parse_csv', 'parse the csv']);
    expect(Object.fromEntries(counts)).toEqual({ pars: 2, csv: 2, parsecsv: 1, the: 1 });
    expect(words).toBe(6);
  });

  it('weighs frequent words more, up to a maximum', () => {
    const weights = [0, 1, 2, 4, COUNT_MAX].map((count) => bm25Weight(count, 64));
    expect(weights).toEqual(weights.toSorted((a, b) => a - b));
    expect(weights[1]).toBeCloseTo(1);
    expect(bm25Weight(1_000, 64)).toBe(weights.at(-1));
  });

  it('gives rare words more weight, and every word some', () => {
    expect(idf(1_000, 1)).toBeGreaterThan(idf(1_000, 500));
    expect(idf(1_000, 1_000)).toBeGreaterThan(0);
  });

  it('searches stop words only if there are no other words', () => {
    expect(queryTerms('the sum of the even numbers')).toEqual(['sum', 'even', 'number']);
    expect(queryTerms('to be or not to be')).toEqual(['to', 'be', 'or', 'not']);
    expect(queryTerms('" OR * NEAR(')).toEqual(['near']);
    expect(queryTerms(Array.from({ length: 100 }, (_, i) => `w${i}x`).join(' '))).toHaveLength(32);
  });
});
