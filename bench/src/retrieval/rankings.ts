import { type RetrievalFigures, retrievalFigures } from './metrics.js';
import type { EmbedderProfile } from '@etude/domain/ports/model';
import { rankCandidates } from '@etude/memory/layers/memory-search';
import type { Answer } from './candidates.js';

const keys = (list: ReadonlyArray<{ readonly key: string }>) => list.map(({ key }) => key);

export const METHODS = ['dense', 'bm25', 'hybrid'] as const;
export type Method = (typeof METHODS)[number];

/** What each way of searching finds: the vectors' list, the words' list, and both in the order that memory gives them. */
export function figuresOf(answers: readonly Answer[], profile: EmbedderProfile): Record<Method, RetrievalFigures> {
  const by = (rank: (answer: Answer) => readonly string[]) =>
    retrievalFigures(answers.map((answer) => ({ ranked: rank(answer), relevance: answer.query.relevance })));
  return {
    dense: by(({ found }) => keys(found.dense)),
    bm25: by(({ found }) => keys(found.words)),
    hybrid: by(({ found }) => keys(rankCandidates(found, profile, 0).map(({ candidate }) => candidate))),
  };
}
