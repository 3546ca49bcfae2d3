import { type RetrievalFigures, retrievalFigures } from './metrics.js';
import type { EmbedderProfile } from '@etude/domain/ports/model';
import { rankCandidates } from '@etude/memory/layers/memory-search';
import type { Candidate } from '@etude/memory/record-store';
import type { Answer } from './candidates.js';

const keys = (list: readonly Candidate[]) => list.map(({ key }) => key);
const best = (found: readonly Candidate[], value: 'cosine' | 'bm25') =>
  keys(found.filter((one) => one[value] > 0).toSorted((a, b) => b[value] - a[value]));

export const METHODS = ['dense', 'bm25', 'hybrid'] as const;
export type Method = (typeof METHODS)[number];

/** Figures of each method: hits by vectors, hits by words, and both kinds in memory's order. */
export function figuresOf(answers: readonly Answer[], profile: EmbedderProfile): Record<Method, RetrievalFigures> {
  const by = (rank: (answer: Answer) => readonly string[]) =>
    retrievalFigures(answers.map((answer) => ({ ranked: rank(answer), relevance: answer.query.relevance })));
  return {
    dense: by(({ found }) => best(found, 'cosine')),
    bm25: by(({ found }) => best(found, 'bm25')),
    hybrid: by(({ found }) => keys(rankCandidates(found, profile, 0).map(({ candidate }) => candidate))),
  };
}
