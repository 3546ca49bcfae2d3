import { halfOf } from './metrics.js';
import type { EmbedderProfile } from '@etude/domain/ports/model';
import type { Answer } from './candidates.js';
import { figuresOf } from './rankings.js';

export interface Trial {
  readonly denseWeight: number;
  /** nDCG@10 of hybrid minus the better one of dense and BM25, in the set where this difference is least. */
  readonly margin: number;
  /** nDCG@10 of hybrid, mean over the sets. */
  readonly mean: number;
}

const STEPS = 20;

/** Tries every weight on the halves for choosing. The largest margin comes first; among equal margins, the largest mean. */
export function sweepWeights(sets: ReadonlyArray<readonly Answer[]>, profile: EmbedderProfile): Trial[] {
  const halves = sets.map((answers) => answers.filter(({ query }) => halfOf(query.id) === 'choose'));
  const weights = Array.from({ length: STEPS + 1 }, (_, i) => i / STEPS);
  return weights
    .map((denseWeight) => trial(halves, weighted(profile, denseWeight)))
    .toSorted((a, b) => b.margin - a.margin || b.mean - a.mean);
}

const weighted = (profile: EmbedderProfile, denseWeight: number): EmbedderProfile => ({
  model: profile.model,
  dimension: profile.dimension,
  denseWeight,
  calibrate: (cosine) => profile.calibrate(cosine),
});

function trial(halves: ReadonlyArray<readonly Answer[]>, profile: EmbedderProfile): Trial {
  const figures = halves.map((answers) => figuresOf(answers, profile));
  const margins = figures.map(({ dense, bm25, hybrid }) => hybrid.ndcg10 - Math.max(dense.ndcg10, bm25.ndcg10));
  const mean = figures.reduce((sum, { hybrid }) => sum + hybrid.ndcg10, 0) / figures.length;
  return { denseWeight: profile.denseWeight, margin: Math.min(...margins), mean };
}
