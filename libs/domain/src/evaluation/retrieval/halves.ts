import { createHash } from 'node:crypto';

/** Weights are chosen on one half of the queries and reported on the other. */
export type Half = 'choose' | 'report';

/** By the first bit of the id's SHA-256: the same whatever else is in the set, and in whatever order. */
export function halfOf(queryId: string): Half {
  const [first = 0] = createHash('sha256').update(queryId).digest();
  return first < 128 ? 'choose' : 'report';
}
