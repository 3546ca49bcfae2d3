import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bm25Weight, COUNT_MAX, idf, namesAsWords, queryTerms, queryWordsOf, termCounts, wordsOf } from './words.js';

const texts = (text: string) => wordsOf(text).map((word) => word.text);

describe('wordsOf', () => {
  it.each([
    ['parse_csv(line)', ['pars', 'csv', 'parsecsv', 'line']],
    ['parseCsv', ['pars', 'csv', 'parsecsv']],
    ['HTTPServer2', ['http', 'server', '2', 'httpserver2']],
    ['summing sorted lists, boxes', ['sum', 'sort', 'list', 'box']],
    ['bus class this', ['bus', 'class', 'this']],
    ['日本語', ['日', '本', '日本', '語', '本語']],
    ['利用CSV文件', ['利', '用', '利用', 'csv', '文', '件', '文件']],
    ['Ｆｕｌｌ', ['full']],
    ['😀 -- ""', ['😀']],
  ])('splits %j', (text, expected) => {
    expect(texts(text)).toEqual(expected);
  });

  it('marks the parts of names', () => {
    const inName = wordsOf('total_even(xs) sums evenly').filter((word) => word.inName);
    expect(inName.map((word) => word.text)).toEqual(['total', 'even', 'totaleven']);
  });

  it('searches single characters only if there are no pairs', () => {
    expect(queryWordsOf('日本').map((word) => word.text)).toEqual(['日本']);
    expect(queryWordsOf('日').map((word) => word.text)).toEqual(['日']);
  });

  it('returns only letters, marks, digits and emoji', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        for (const word of wordsOf(text)) expect(word.text).toMatch(/^([\p{L}\p{M}\p{N}]+|\p{Extended_Pictographic})$/u);
      }),
    );
  });

  it('limits the text before and after normalising', () => {
    const honorific = wordsOf('ﷺ').length;
    expect(honorific).toBeGreaterThan(1);
    expect(wordsOf('ﷺ '.repeat(99_000)).length).toBeLessThan(64_000 / 4);
    expect(wordsOf('word '.repeat(99_000))).toHaveLength(12_800);
  });

  it('finds every text by itself', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => {
        const indexed = new Set(texts(text));
        expect(queryWordsOf(text).every((word) => indexed.has(word.text))).toBe(true);
      }),
    );
  });
});

describe('namesAsWords', () => {
  it.each([
    ['fs_read(src/userForms.ts): parse_HTTPHeader, LIMIT', 'fs read src user Forms ts : parse HTTP Header, LIMIT'],
    ['{"path":"db-test/a1.sql"}', 'path : db test a1 sql'],
    ['Größe', 'Größe'],
  ])('tells the names of %j as words', (text, expected) => {
    expect(namesAsWords(text)).toBe(expected);
  });
});

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
