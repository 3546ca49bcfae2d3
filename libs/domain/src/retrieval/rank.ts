/** What is known about one candidate; a rank counts from 1, null where that search did not find it. */
export interface Candidate {
  readonly denseRank: number | null;
  readonly wordsRank: number | null;
  readonly createdAt: number;
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
}

export interface Ranking {
  readonly denseWeight: number;
  /** ms since 1970 */
  readonly now: number;
}

export interface Score {
  readonly fused: number;
  readonly recency: number;
  readonly score: number;
}

/** How fast a rank loses: the 21st place is worth half of the first. Lists here are short, so less than the usual 60. */
const RANK_K = 20;
const HALF_LIFE_MS = 30 * 86_400_000;
/** How much a worthless, or an endlessly old, record loses against a perfect one. Small: relevance decides. */
const WORTH_SHARE = 0.15;
const RECENCY_SHARE = 0.15;

/**
 * Weighted reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), lowered by age and lack of worth. 1 is the best
 * that there can be: first in both searches, new, and of full worth.
 */
export function scoreOf(candidate: Candidate, ranking: Ranking): Score {
  const fused = ranking.denseWeight * reciprocal(candidate.denseRank) + (1 - ranking.denseWeight) * reciprocal(candidate.wordsRank);
  const recency = recencyOf(candidate.createdAt, ranking.now);
  return { fused, recency, score: weighed(fused, { recency, worth: candidate.worth }) };
}

/** 1 for what is new, half as much every thirty days. */
export function recencyOf(createdAt: number, now: number): number {
  return 0.5 ** (Math.max(0, now - createdAt) / HALF_LIFE_MS);
}

/** Relevance, lowered by age and lack of worth by at most the share of each. */
export function weighed(fused: number, { recency, worth }: { readonly recency: number; readonly worth: number }): number {
  return fused * (1 - WORTH_SHARE * (1 - worth) - RECENCY_SHARE * (1 - recency));
}

function reciprocal(rank: number | null): number {
  return rank === null ? 0 : (RANK_K + 1) / (RANK_K + rank);
}
