import { createHash } from 'node:crypto';

/** How relevant each document is to one query, by id. A missing document is not relevant. */
export type Relevance = ReadonlyMap<string, number>;

/**
 * Normalised discounted cumulative gain of the first k (Järvelin and Kekäläinen 2002), with linear gain as `trec_eval` has it
 * and BEIR reports it. 1 if the most relevant documents come first; 0 if no relevant document is ranked or known.
 *
 * @param ranked ids, best first, each once
 */
export function ndcgAt(k: number, ranked: readonly string[], relevance: Relevance): number {
  const gains = ranked.slice(0, k).map((id) => relevance.get(id) ?? 0);
  const ideal = [...relevance.values()].toSorted((a, b) => b - a).slice(0, k);
  const best = discounted(ideal);
  return best === 0 ? 0 : discounted(gains) / best;
}

function discounted(gains: readonly number[]): number {
  return gains.reduce((sum, gain, i) => sum + Math.max(0, gain) / Math.log2(i + 2), 0);
}

/** Share of all relevant documents that are among the first k; 0 if no relevant document is known. */
export function recallAt(k: number, ranked: readonly string[], relevance: Relevance): number {
  const relevant = new Set([...relevance].filter(([, grade]) => grade > 0).map(([id]) => id));
  if (relevant.size === 0) return 0;
  return ranked.slice(0, k).filter((id) => relevant.has(id)).length / relevant.size;
}

export interface RetrievalFigures {
  readonly ndcg10: number;
  readonly recall100: number;
}

/** Means over queries; NaN without queries. */
export function retrievalFigures(
  answers: ReadonlyArray<{ readonly ranked: readonly string[]; readonly relevance: Relevance }>,
): RetrievalFigures {
  const mean = (of: (answer: (typeof answers)[number]) => number) => answers.reduce((sum, answer) => sum + of(answer), 0) / answers.length;
  return {
    ndcg10: mean(({ ranked, relevance }) => ndcgAt(10, ranked, relevance)),
    recall100: mean(({ ranked, relevance }) => recallAt(100, ranked, relevance)),
  };
}

/** Weights are chosen on one half of the queries and reported on the other half. */
export type Half = 'choose' | 'report';

/** Decides by the first bit of the id's SHA-256, so that other queries and their order change nothing. */
export function halfOf(queryId: string): Half {
  const [first = 0] = createHash('sha256').update(queryId).digest();
  return first < 128 ? 'choose' : 'report';
}
