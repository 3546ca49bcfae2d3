import type { SparseVector } from './point-vectors.js';
import type { Point } from './tenant-points.js';

/** Estimated, half of what Qdrant takes. */
const BYTES_MAX = 16 * 1024 * 1024;
const BYTES_PER_CHAR = 3;
const BYTES_PER_NUMBER = 22;
/** Its number and its weight in the vector, and both once more in the payload. */
const BYTES_PER_WORD = 64;

/** Points in their order, as many in each request as its body may hold. */
export function* insertRequests<T extends { readonly point: Pick<Point, 'payload' | 'vector'> }>(
  points: readonly T[],
): Generator<readonly T[]> {
  let some: T[] = [];
  let bytes = 0;
  for (const each of points) {
    if (bytes > BYTES_MAX) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(each);
    bytes += bytesOf(each.point);
  }
  if (some.length > 0) yield some;
}

function bytesOf({ payload, vector }: Pick<Point, 'payload' | 'vector'>): number {
  const { content } = payload;
  const chars = typeof content === 'string' ? content.length * BYTES_PER_CHAR : 0;
  return Object.values(vector).reduce<number>((sum, each) => sum + bytesOfVector(each), chars);
}

/** Of several dense ones, or of words. */
function bytesOfVector(vector: unknown): number {
  if (Array.isArray(vector)) return vector.flat().length * BYTES_PER_NUMBER;
  return (vector as SparseVector).indices.length * BYTES_PER_WORD;
}
