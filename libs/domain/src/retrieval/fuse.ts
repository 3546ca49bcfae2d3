/** What both searches say of a record. */
export interface Match {
  readonly createdAt: number;
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** Of the closest of its vectors; 0 where it has none. */
  readonly cosine: number;
  /** 0 where the words did not find it. */
  readonly bm25: number;
}

export interface Fusion {
  /** Of the embedder's profile. */
  readonly denseWeight: number;
  /** Of the embedder's profile: what a cosine means, 0 to 1. */
  readonly calibrate: (cosine: number) => number;
  /** ms since 1970 */
  readonly now: number;
}

export interface Score {
  readonly fused: number;
  readonly recency: number;
  readonly score: number;
}

/** A BM25 of this is worth one half; see docs/retrieval.md for how it was chosen. */
export const BM25_HALF = 40;
const HALF_LIFE_MS = 30 * 86_400_000;
/** How much a worthless, or an endlessly old, record loses against a perfect one. Small: relevance decides. */
const WORTH_SHARE = 0.15;
const RECENCY_SHARE = 0.15;

/**
 * Score of a record from what both searches say of it: the calibrated similarity and the saturated BM25, weighted, and lowered
 * by age and lack of worth.
 *
 * Why values and not ranks: a rank says nothing of how much better the first is than the second, nor whether the best match of
 * words is one at all. Measured in docs/retrieval.md, after Bruch, Gai and Ingber 2023.
 */
export function fusedScore({ cosine, bm25, createdAt, worth }: Match, { denseWeight, calibrate, now }: Fusion): Score {
  const fused = denseWeight * calibrate(rounded(cosine)) + (1 - denseWeight) * saturated(rounded(bm25));
  const recency = recencyOf(createdAt, now);
  return { fused, recency, score: weighed(fused, { recency, worth }) };
}

/** 0 to 1: the tenth word in common tells less than the first. */
function saturated(bm25: number): number {
  return bm25 / (bm25 + BM25_HALF);
}

/** Equal texts have equal values, whatever the last bits of a database's arithmetic say; then age and worth decide. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** 1 for what is new, half as much every thirty days. */
function recencyOf(createdAt: number, now: number): number {
  return 0.5 ** (Math.max(0, now - createdAt) / HALF_LIFE_MS);
}

/** Relevance, lowered by age and lack of worth by at most the share of each. */
function weighed(fused: number, { recency, worth }: { readonly recency: number; readonly worth: number }): number {
  return fused * (1 - WORTH_SHARE * (1 - worth) - RECENCY_SHARE * (1 - recency));
}

/** What forgetting looks at. */
export interface Remembered {
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** ms since it was made or last changed; negative counts as 0. */
  readonly ageMs: number;
  /** How often it was found, told again or called. */
  readonly uses: number;
}

const FORGETTING_HALF_LIFE_MS = 90 * 86_400_000;

/**
 * How much speaks for showing a record, 0 to 1: its worth, halved every 90 days. Use slows that down: what was used once lasts twice as
 * long, and each doubling adds as much again, after the forgetting curve with spaced repetition (Ebbinghaus 1885; MemoryBank 2023).
 */
export function forgettingScore({ worth, ageMs, uses }: Remembered): number {
  const strength = 1 + Math.log2(1 + Math.max(0, uses));
  return Math.min(1, Math.max(0, worth)) * 0.5 ** (Math.max(0, ageMs) / (FORGETTING_HALF_LIFE_MS * strength));
}
