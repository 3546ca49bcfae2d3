import { type RetrievalFigures, retrievalFigures } from '@etude/domain/evaluation/retrieval/metrics';
import { fuse, type Fusion } from '@etude/domain/retrieval/fuse';
import type { Answer } from './candidates.js';

const keys = (list: ReadonlyArray<{ readonly key: string }>) => list.map(({ key }) => key);

export const METHODS = ['dense', 'bm25', 'hybrid'] as const;
export type Method = (typeof METHODS)[number];

/** What each way of searching finds: the vectors' list, the words' list, and both fused as memory fuses them. */
export function figuresOf(answers: readonly Answer[], fusion: Fusion): Record<Method, RetrievalFigures> {
  const by = (rank: (answer: Answer) => readonly string[]) =>
    retrievalFigures(answers.map((answer) => ({ ranked: rank(answer), relevance: answer.query.relevance })));
  return {
    dense: by(({ found }) => keys(found.dense)),
    bm25: by(({ found }) => keys(found.words)),
    hybrid: by(({ found }) => fused(found, fusion)),
  };
}

export const fused = (found: Answer['found'], fusion: Fusion) => fuse(found, fusion).map(({ candidate }) => candidate.key);
