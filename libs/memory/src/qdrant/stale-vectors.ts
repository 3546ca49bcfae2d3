import { errorCode } from '@etude/contracts/errors';
import type { VectorModel } from '../record-store.js';
import { vectorName, WORDS } from './collections.js';
import type { Conditions, Point, TenantPoints } from './tenant-points.js';

/**
 * Names of vectors that a point may have and its successor has not.
 *
 * Before 1.19 Qdrant leaves them where the point is in a segment that it wrote anew: the old words would find the new record, and a
 * move to another model would pass over it. So they are taken away before a point is replaced, those of models, and after it, all:
 * before, so that none stays where a writer dies in between, since a record without vectors is found by whoever makes them; after, since
 * they may have been made in between.
 */
export function staleNames(vector: Point['vector'], models: readonly VectorModel[]): readonly string[] {
  return [WORDS, ...models.map(({ name }) => vectorName(name))].filter((name) => !(name in vector));
}

/** One by one: the model of one may have been dropped meanwhile. */
export async function deleteStale(
  points: TenantPoints,
  collection: string,
  names: readonly string[],
  conditions: Conditions,
): Promise<void> {
  for (const name of names) {
    await points.deleteVectors(collection, [name], conditions).catch((error: unknown) => {
      if (errorCode(error) !== 'NOT_FOUND') throw error;
    });
  }
}
