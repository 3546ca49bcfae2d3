import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BM25_HALF, forgettingScore, fusedScore } from './fuse.js';

const fusion = { denseWeight: 0.6, calibrate: (cosine: number) => Math.max(0, cosine), now: 1_000_000_000_000 };
const DAY_MS = 86_400_000;
const found = { cosine: 0, bm25: 0, createdAt: fusion.now, worth: 1 };
describe('fusedScore', () => {
  it('weighs both searches', () => {
    expect(fusedScore({ ...found, cosine: 0.5, bm25: BM25_HALF }, fusion).fused).toBeCloseTo(0.6 * 0.5 + 0.4 * 0.5);
    expect(fusedScore({ ...found, cosine: 1 }, fusion)).toEqual({ fused: 0.6, recency: 1, score: 0.6 });
  });

  it('lowers a score by age and lack of worth, each by its share at most', () => {
    const best = fusedScore({ ...found, cosine: 1, bm25: 1e9 }, fusion);
    const worst = fusedScore({ ...found, cosine: 1, bm25: 1e9, worth: 0, createdAt: 0 }, fusion);
    expect(worst.score / best.score).toBeCloseTo(0.7);
  });

  it.each([
    [0, 1],
    [30, 0.5],
    [-1, 1],
  ])('halves recency every thirty days: %s days old is %s', (days, recency) => {
    expect(fusedScore({ ...found, createdAt: fusion.now - days * DAY_MS }, fusion).recency).toBeCloseTo(recency);
  });

  it('treats values that differ in their last bits as equal', () => {
    const { score } = fusedScore({ ...found, cosine: 0.1 + 0.2, bm25: 3 }, fusion);
    expect(fusedScore({ ...found, cosine: 0.3, bm25: 3 + 1e-9 }, fusion).score).toBe(score);
  });

  it('stays in 0 to 1 and rises with both searches', () => {
    const cosine = fc.double({ min: -1, max: 1, noNaN: true });
    const bm25 = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(cosine, bm25, fc.double({ min: 0, max: 1, noNaN: true }), (near, words, denseWeight) => {
        const at = (more: object) => fusedScore({ ...found, cosine: near, bm25: words, ...more }, { ...fusion, denseWeight }).score;
        expect(at({})).toBeGreaterThanOrEqual(0);
        expect(at({})).toBeLessThanOrEqual(1);
        expect(at({ cosine: 1 })).toBeGreaterThanOrEqual(at({}));
        expect(at({ bm25: words * 2 })).toBeGreaterThanOrEqual(at({}));
      }),
    );
  });
});

describe('forgettingScore', () => {
  it.each([
    [0, 0, 0.8],
    [-5, 0, 0.8],
    [90 * DAY_MS, 0, 0.4],
    [90 * DAY_MS, 1, 0.8 * Math.SQRT1_2],
  ])('halves the worth every 90 days, more slowly after a use: %d ms, %d uses', (ageMs, uses, score) => {
    expect(forgettingScore({ worth: 0.8, ageMs, uses })).toBeCloseTo(score, 12);
  });

  it('stays in 0 to 1, falls with age, and rises with worth and use', () => {
    const remembered = fc.record({
      worth: fc.double({ min: 0, max: 1, noNaN: true }),
      ageMs: fc.double({ min: 0, max: 20_000 * DAY_MS, noNaN: true }),
      uses: fc.nat(1_000_000),
    });
    fc.assert(
      fc.property(remembered, remembered, (a, b) => {
        const score = forgettingScore(a);
        expect(score >= 0 && score <= 1).toBe(true);
        expect(forgettingScore({ ...a, worth: Math.max(a.worth, b.worth), uses: a.uses + b.uses })).toBeGreaterThanOrEqual(score);
        expect(forgettingScore({ ...a, ageMs: a.ageMs + b.ageMs })).toBeLessThanOrEqual(score);
      }),
    );
  });
});
