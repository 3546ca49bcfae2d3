import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { halfOf, ndcgAt, recallAt, retrievalFigures } from './metrics.js';

const relevance = new Map([
  ['a', 3],
  ['b', 2],
  ['c', 1],
  ['z', 0],
]);

describe('ndcgAt', () => {
  it('is what one gets by hand', () => {
    // Gains 0, 3, 1: 3/log2(3) + 1/log2(4) = 1.8928 + 0.5; ideal 3, 2, 1: 3 + 1.2619 + 0.5.
    expect(ndcgAt(3, ['z', 'a', 'c'], relevance)).toBeCloseTo(2.3928 / 4.7619, 4);
    expect(ndcgAt(1, ['b'], relevance)).toBeCloseTo(2 / 3);
    expect(ndcgAt(10, ['x', 'y', 'a'], new Map([['a', 1]]))).toBeCloseTo(0.5);
  });

  it('is 0 where nothing relevant is found, or known', () => {
    expect(ndcgAt(10, ['x'], relevance)).toBe(0);
    expect(ndcgAt(10, ['x'], new Map())).toBe(0);
    expect(ndcgAt(2, ['x', 'y', 'a'], relevance)).toBe(0);
  });

  it('is 1 for the ideal order and never more', () => {
    expect(ndcgAt(10, ['a', 'b', 'c', 'z'], relevance)).toBe(1);
    fc.assert(
      fc.property(fc.shuffledSubarray(['a', 'b', 'c', 'z', 'x']), fc.integer({ min: 1, max: 6 }), (ranked, k) => {
        expect(ndcgAt(k, ranked, relevance)).toBeLessThanOrEqual(1 + 1e-12);
        expect(ndcgAt(k, ranked, relevance)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

describe('recallAt', () => {
  it('counts what is relevant among the first k', () => {
    expect(recallAt(2, ['a', 'x', 'b'], relevance)).toBeCloseTo(1 / 3);
    expect(recallAt(100, ['a', 'x', 'b', 'z'], relevance)).toBeCloseTo(2 / 3);
    expect(recallAt(100, ['a'], new Map([['z', 0]]))).toBe(0);
  });
});

describe('retrievalFigures', () => {
  it('takes means over the queries', () => {
    const one = new Map([['a', 1]]);
    const figures = retrievalFigures([
      { ranked: ['a'], relevance: one },
      { ranked: ['x', 'a'], relevance: one },
      { ranked: [], relevance: one },
    ]);
    expect(figures.recall100).toBeCloseTo(2 / 3);
    expect(figures.ndcg10).toBeCloseTo((1 + 1 / Math.log2(3)) / 3);
  });
});

describe('halfOf', () => {
  it('parts any ids into two halves of about one size, always the same', () => {
    const halves = Array.from({ length: 1_000 }, (_, i) => halfOf(`q${i}`));
    const chosen = halves.filter((half) => half === 'choose').length;
    expect(chosen).toBeGreaterThan(450);
    expect(chosen).toBeLessThan(550);
    expect([halfOf('a'), halfOf('b'), halfOf('c')]).toEqual(['report', 'choose', 'choose']);
  });
});
