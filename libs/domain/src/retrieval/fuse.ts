import { recencyOf, type Score, weighed } from './rank.js';

/** A record that a search found, by meaning, by words, or by both. */
export interface Found {
  readonly key: string;
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

/** A BM25 of this is worth one half; see docs/retrieval.md for how it was chosen. */
export const BM25_HALF = 20;

/**
 * Score of a record from what both searches say of it: the calibrated similarity and the saturated BM25, weighted, and lowered
 * by age and lack of worth.
 *
 * Why values and not ranks: a rank says nothing of how much better the first is than the second, nor whether the best match of
 * words is one at all. Measured in docs/retrieval.md, after Bruch, Gai and Ingber 2023.
 */
export function fusedScore({ cosine, bm25, createdAt, worth }: Omit<Found, 'key'>, { denseWeight, calibrate, now }: Fusion): Score {
  const fused = denseWeight * calibrate(cosine) + (1 - denseWeight) * (bm25 / (bm25 + BM25_HALF));
  const recency = recencyOf(createdAt, now);
  return { fused, recency, score: weighed(fused, { recency, worth }) };
}

export type Fused<T> = Score & { readonly candidate: T };

/** Both lists as one, best first; equal scores by cosine, then by age, newest first, then by key. */
export function fuse<T extends Found>(lists: { readonly dense: readonly T[]; readonly words: readonly T[] }, fusion: Fusion): Fused<T>[] {
  const candidates = new Map([...lists.dense, ...lists.words].map((candidate) => [candidate.key, candidate]));
  return [...candidates.values()]
    .map((candidate) => ({ candidate, ...fusedScore(candidate, fusion) }))
    .toSorted((a, b) => b.score - a.score || b.candidate.cosine - a.candidate.cosine || newestThenKey(a.candidate, b.candidate));
}

function newestThenKey(a: Found, b: Found): number {
  if (a.createdAt !== b.createdAt) return b.createdAt - a.createdAt;
  return a.key < b.key ? -1 : 1;
}
