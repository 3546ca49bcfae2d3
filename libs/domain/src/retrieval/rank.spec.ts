import { describe, expect, it } from 'vitest';
import { scoreOf } from './rank.js';

const ranking = { denseWeight: 0.4, now: 1_000_000_000_000 };
const best = { denseRank: 1, wordsRank: 1, createdAt: ranking.now, worth: 1 };

describe('scoreOf', () => {
  it('gives 1 to what is first in both searches, new, and of full worth', () => {
    expect(scoreOf(best, ranking)).toEqual({ fused: 1, recency: 1, score: 1 });
  });

  it('weighs the two searches as the embedder says', () => {
    expect(scoreOf({ ...best, wordsRank: null }, ranking).fused).toBeCloseTo(0.4);
    expect(scoreOf({ ...best, denseRank: null }, ranking).fused).toBeCloseTo(0.6);
  });

  it('halves recency in thirty days and never drops the record', () => {
    expect(scoreOf({ ...best, createdAt: ranking.now - 30 * 86_400_000 }, ranking).recency).toBeCloseTo(0.5);
    expect(scoreOf({ ...best, createdAt: 0, worth: 0 }, ranking).score).toBeCloseTo(0.7, 2);
  });

  it('takes what is dated ahead for new', () => {
    expect(scoreOf({ ...best, createdAt: ranking.now + 1 }, ranking).recency).toBe(1);
  });
});
