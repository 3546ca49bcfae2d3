import type { EmbedderProfile } from '../ports/model.js';

export interface Match {
  readonly createdAt: number;
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** Cosine of the record's closest vector; 0 if the record has none. */
  readonly cosine: number;
  /** 0 if the word search did not find it. */
  readonly bm25: number;
}

/** The profile of the embedder, and the time in ms since 1970. */
type Fusion = Pick<EmbedderProfile, 'denseWeight' | 'calibrate'> & { readonly now: number };

/** The BM25 that counts as one half; docs/retrieval.md explains the choice. */
export const BM25_HALF = 40;
const HALF_LIFE_MS = 30 * 86_400_000;
/** Share of the score that a worthless record loses against a perfect one. Small, so that relevance decides. */
const WORTH_SHARE = 0.15;
const RECENCY_SHARE = 0.15;

/**
 * Scores a record: the weighted sum of calibrated similarity and saturated BM25, lowered by age and lack of worth.
 *
 * Why values and not ranks: a rank doesn't show how much better the first match is than the second, or whether it matches at all. Measured
 * in docs/retrieval.md, after Bruch, Gai and Ingber 2023.
 */
export function fusedScore({ cosine, bm25, createdAt, worth }: Match, { denseWeight, calibrate, now }: Fusion) {
  const words = rounded(bm25);
  // Saturated, so that a tenth word in common adds less than the first.
  const fused = denseWeight * calibrate(rounded(cosine)) + (1 - denseWeight) * (words / (words + BM25_HALF));
  const recency = 0.5 ** (Math.max(0, now - createdAt) / HALF_LIFE_MS);
  return { fused, recency, score: fused * (1 - WORTH_SHARE * (1 - worth) - RECENCY_SHARE * (1 - recency)) };
}

/** 95 of 100 pairs of unrelated texts have a lower calibrated similarity, with any embedder. */
export const SIMILARITY_RELEVANT = 0.3;
/** 95 of 100 hits for unrelated questions, each the five best of a hundred texts, have a lower BM25; see docs/retrieval.md. */
export const BM25_TELLING = 9;

/** Whether a hit is related by meaning, or by words that few other texts have. The search must explain, else only meaning counts. */
export const isRelevant = (
  { similarity, explanation = {} }: { readonly similarity: number; readonly explanation?: ScoreParts },
  similarityMin = SIMILARITY_RELEVANT,
) => similarity >= similarityMin || (explanation['bm25'] ?? 0) >= BM25_TELLING;

/** The parts of a score, by the names in `docs/memory.md`. */
export type ScoreParts = Readonly<Record<string, number>>;

/** The sum that leads to a score, in numbers: "0.52 = (0.6 × similarity 0.77 + 0.4 × words 0.14) × (1 − …)". */
export function sumOf({ similarity = 0, bm25 = 0, recency = 0, worth = 0, speaker, score = 0 }: ScoreParts, denseWeight: number): string {
  const words = bm25 / (bm25 + BM25_HALF);
  const lowered = `(1 − ${WORTH_SHARE} × (1 − worth ${shown(worth)}) − ${RECENCY_SHARE} × (1 − recency ${shown(recency)}))`;
  const fused = `${shown(denseWeight)} × similarity ${shown(similarity)} + ${shown(1 - denseWeight)} × words ${shown(words)}`;
  return `${shown(score)} = (${fused}) × ${lowered}${speaker === undefined ? '' : ` × ${speaker} for another speaker`}`;
}

/** One sentence that says what puts a hit before the next one. @param weights of meaning, for both */
export function comparedWith(hit: ScoreParts, next: ScoreParts, weights: readonly [number, number]): string {
  const partsOf = ({ similarity = 0, bm25 = 0, recency = 0, worth = 0, speaker = 1, score = 0 }: ScoreParts, denseWeight: number) => ({
    meaning: denseWeight * similarity,
    words: (1 - denseWeight) * (bm25 / (bm25 + BM25_HALF)),
    worth: WORTH_SHARE * worth,
    age: RECENCY_SHARE * recency,
    speaker: score - score / speaker,
  });
  const [ours, theirs] = [partsOf(hit, weights[0]), partsOf(next, weights[1])];
  const names = ['meaning', 'words', 'worth', 'age', 'speaker'] as const;
  const gains = names.map((name) => ({ name, by: ours[name] - theirs[name] })).toSorted((a, b) => Math.abs(b.by) - Math.abs(a.by));
  const told = gains.filter(({ by }) => Math.abs(by) >= 0.005).map(({ name, by }) => `${by > 0 ? '+' : '−'}${shown(Math.abs(by))} ${name}`);
  return `Before the next by ${shown((hit.score ?? 0) - (next.score ?? 0))}: ${told.length === 0 ? 'both are nearly equal' : told.join(', ')}.`;
}

const shown = (value: number) => String(Math.round(value * 100) / 100);

/** Rounds a score, so that last-bit differences of a database don't decide between equal texts; age and worth do. */
const rounded = (value: number) => Math.round(value * 1e6) / 1e6;

export interface Remembered {
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** Time since it was made or last changed, in ms; negative counts as 0. */
  readonly ageMs: number;
  /** How often the record was found, told again or used. */
  readonly uses: number;
}

const FORGETTING_HALF_LIFE_MS = 90 * 86_400_000;

/**
 * How much a record is worth keeping in retrieval, 0 to 1: its worth, halved every 90 days. A record that was used once lasts twice as
 * long; each doubling of uses adds as much again. After the forgetting curve with spaced repetition (Ebbinghaus 1885; MemoryBank 2023).
 */
export function forgettingScore({ worth, ageMs, uses }: Remembered): number {
  const strength = 1 + Math.log2(1 + Math.max(0, uses));
  return Math.min(1, Math.max(0, worth)) * 0.5 ** (Math.max(0, ageMs) / (FORGETTING_HALF_LIFE_MS * strength));
}
