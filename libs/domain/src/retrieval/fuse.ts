import type { EmbedderProfile } from '../ports/model.js';

export interface Match {
  readonly createdAt: number;
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** Cosine of the record's closest vector. 0 if the record has no vector. */
  readonly cosine: number;
  /** BM25 score. 0 if the search by words didn't find the record. */
  readonly bm25: number;
}

type Fusion = Pick<EmbedderProfile, 'denseWeight' | 'calibrate'> & { readonly now: number };

/** A record with this BM25 score gets half of the possible score for words. docs/retrieval.md explains the choice. */
export const BM25_HALF = 40;
const HALF_LIFE_MS = 30 * 86_400_000;
/** The share of the score that a record of worth 0 loses. It is small, so that relevance decides. */
const WORTH_SHARE = 0.15;
const RECENCY_SHARE = 0.15;

/**
 * Scores a record by the weighted sum of calibrated similarity and saturated BM25. Age and low worth reduce the score.
 *
 * Why values and not ranks: a rank doesn't show how much better the first match is than the second, or whether it matches at all. docs/retrieval.md
 * has measurements, which follow Bruch, Gai and Ingber 2023.
 */
export function fusedScore({ cosine, bm25, createdAt, worth }: Match, { denseWeight, calibrate, now }: Fusion) {
  const words = rounded(bm25);
  const fused = denseWeight * calibrate(rounded(cosine)) + (1 - denseWeight) * (words / (words + BM25_HALF));
  const recency = 0.5 ** (Math.max(0, now - createdAt) / HALF_LIFE_MS);
  return { fused, recency, score: fused * (1 - WORTH_SHARE * (1 - worth) - RECENCY_SHARE * (1 - recency)) };
}

/** With any embedder, 95 of 100 pairs of unrelated texts have a lower calibrated similarity than this. */
export const SIMILARITY_RELEVANT = 0.3;
/** For unrelated questions, 95 of 100 hits have a lower BM25 score. docs/retrieval.md says how this was measured. */
const BM25_TELLING = 9;

/** Whether a hit is related by meaning or by rare words. Without `explain` in the search, only the meaning is known. */
export const isRelevant = (
  { similarity, explanation = {} }: { readonly similarity: number; readonly explanation?: ScoreParts },
  similarityMin = SIMILARITY_RELEVANT,
) => similarity >= similarityMin || (explanation['bm25'] ?? 0) >= BM25_TELLING;

/** The parts of a score, under the names in `docs/memory.md`. */
type ScoreParts = Readonly<Record<string, number>>;

/** The calculation of a score as text: "0.52 = (0.6 × similarity 0.77 + 0.4 × words 0.14) × (1 − …)". */
export function sumOf({ similarity = 0, bm25 = 0, recency = 0, worth = 0, speaker, score = 0 }: ScoreParts, denseWeight: number): string {
  const words = bm25 / (bm25 + BM25_HALF);
  const lowered = `(1 − ${WORTH_SHARE} × (1 − worth ${shown(worth)}) − ${RECENCY_SHARE} × (1 − recency ${shown(recency)}))`;
  const fused = `${shown(denseWeight)} × similarity ${shown(similarity)} + ${shown(1 - denseWeight)} × words ${shown(words)}`;
  return `${shown(score)} = (${fused}) × ${lowered}${speaker === undefined ? '' : ` × ${speaker} for another speaker`}`;
}

/** One sentence that says why a hit is ranked before the next hit. @param weights the weight of meaning for each of the two hits */
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

/** Rounds a score. Otherwise rounding errors of a database, not age and worth, would decide between equal texts. */
const rounded = (value: number) => Math.round(value * 1e6) / 1e6;

interface Remembered {
  /** Importance, confidence or success rate, 0 to 1. */
  readonly worth: number;
  /** Time since the record was made or changed, in ms. A negative time counts as 0. */
  readonly ageMs: number;
  /** How often the record was found, told again or used. */
  readonly uses: number;
}

const FORGETTING_HALF_LIFE_MS = 90 * 86_400_000;

/**
 * How much a record is worth keeping, 0 to 1. It is the record's worth, halved every 90 days. After one use, it is halved every 180 days, and each
 * doubling of uses adds about 90 days. It follows the forgetting curve with repetition (Ebbinghaus 1885; MemoryBank 2023).
 */
export function forgettingScore({ worth, ageMs, uses }: Remembered): number {
  const strength = 1 + Math.log2(1 + Math.max(0, uses));
  return Math.min(1, Math.max(0, worth)) * 0.5 ** (Math.max(0, ageMs) / (FORGETTING_HALF_LIFE_MS * strength));
}
