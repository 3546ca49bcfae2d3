import { EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { Layer } from './search-index.js';
import type { Owner, TenantRows } from './tenant-rows.js';

/** Of sqlite-vec. */
const NEIGHBOURS_MAX = 4_096;

/** A vector's bytes; null for a text that has no direction, such as one without a word in it. */
export type VectorBytes = Uint8Array | null;

/** @throws EtudeError EMBEDDING_LENGTH_WRONG */
export async function embedAll(embedder: Embedder, texts: readonly string[]): Promise<VectorBytes[]> {
  if (texts.length === 0) return [];
  const vectors = await embedder.embed(texts);
  const { dimension, model } = embedder.profile;
  const wrong = vectors.find((vector) => vector.length !== dimension || !vector.every(Number.isFinite));
  if (vectors.length !== texts.length || wrong !== undefined) {
    throw new EtudeError(
      'EMBEDDING_LENGTH_WRONG',
      `${model} answered ${vectors.length} vectors for ${texts.length} texts, with ${wrong?.length ?? dimension} numbers instead of ${dimension} finite ones; check the embedder's settings`,
    );
  }
  return vectors.map((vector) =>
    vector.some((value) => value !== 0) ? new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength) : null,
  );
}

export function insertVector(rows: TenantRows, layer: Layer, id: number, owner: Owner, shown: boolean, vector: VectorBytes): void {
  if (vector === null) return;
  rows.run(
    `INSERT INTO entry_vector (id, tenant, layer, embedding, agent, user, shown)
     VALUES (:id, :tenant, :layer, :vector, :agent, :user, :shown)`,
    { id, layer, vector, agent: owner.agent, user: owner.user, shown: shown ? 1 : 0 },
  );
}

export function showVector(rows: TenantRows, id: number, shown: boolean): void {
  rows.run('UPDATE entry_vector SET shown = :shown WHERE id = :id AND tenant = :tenant', { id, shown: shown ? 1 : 0 });
}

/** Cosines of the nearest entries, nearest first. */
export function searchVectors(rows: TenantRows, layer: Layer, vector: VectorBytes, limit: number): Map<number, number> {
  if (vector === null) return new Map();
  const found = rows.all<{ id: number; distance: number }>(
    `SELECT id, distance FROM entry_vector
     WHERE embedding MATCH :vector AND k = :limit AND tenant = :tenant AND layer = :layer AND shown = 1${rows.within}`,
    { vector, layer, limit: Math.min(limit, NEIGHBOURS_MAX) },
  );
  return new Map(found.map(({ id, distance }) => [id, 1 - distance]));
}

export function cosineOf(rows: TenantRows, id: number, vector: VectorBytes): number {
  if (vector === null) return 0;
  const found = rows.all<{ distance: number }>(
    'SELECT vec_distance_cosine(embedding, :vector) AS distance FROM entry_vector WHERE id = :id AND tenant = :tenant',
    { id, vector },
  )[0];
  return found === undefined ? 0 : 1 - found.distance;
}
