import type { MemoryHit } from '../ports/memory.js';

/** What 95 of 100 pairs that have nothing to do with each other stay below, with any embedder. */
export const SIMILARITY_RELEVANT = 0.3;
/** What 95 of 100 of the five best texts for an unrelated question stay below, in a memory of a hundred texts; see docs/retrieval.md. */
const BM25_TELLING = 9;

/** Whether a hit has to do with what was asked: by its meaning, or as it shares words that hardly any other text has. */
export function isRelevant({ similarity, explanation }: Pick<MemoryHit, 'similarity' | 'explanation'>, similarityMin: number): boolean {
  return similarity >= similarityMin || (explanation?.['bm25'] ?? 0) >= BM25_TELLING;
}
