import type { IndexedText, Model } from '../record-store.js';
import { requireVector } from '../vector-models.js';
import { ANCHOR_WORD, vectorName, WORDS } from './store-schema.js';
import type { Point } from './tenant-points.js';
import { batchesOf } from '@etude/contracts/wire/batches';
import { bm25Weight, queryTerms, termCounts } from '@etude/domain/retrieval/words';
import { createHmac } from 'node:crypto';

export interface SparseVector {
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

/** An artificial word that every record with words gets. No text contains it. */
const PRESENCE = '';

/**
 * Vectors of texts in Qdrant's format.
 *
 * Words are hashed to numbers that differ by tenant, and by store through a secret. Qdrant counts word frequencies per collection, so each
 * tenant's own numbers keep its frequencies apart. The secret keeps anybody from crafting words that collide with another tenant's.
 */
export class PointVectors {
  readonly #seed: number;

  constructor(secret: string, tenant: string) {
    this.#seed = createHmac('sha256', secret).update(tenant).digest().readUInt32LE();
  }

  /** The vectors of a record's searchable texts, by vector name. A name is left out if no text has words or a vector for it. */
  of(indexed: readonly IndexedText[], model: Model): Readonly<Record<string, unknown>> {
    const words = this.#wordsOf(indexed.map(({ text }) => text));
    const dense = denseOf(
      indexed.map(({ vector }) => vector),
      model,
    );
    return { ...(words === null ? {} : { [WORDS]: words }), ...(dense.length === 0 ? {} : { [vectorName(model.name)]: dense }) };
  }

  /** A query for the artificial word. Its score tells how many records with words the server counts, deleted ones included. */
  ofPresence(): SparseVector {
    return { indices: [this.#numberOf(PRESENCE)], values: [1] };
  }

  /** The weights of a point's words as payload. A search can read them one by one, which a sparse vector doesn't allow. */
  weightsIn(vector: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
    const { indices, values } = (vector[WORDS] as SparseVector | undefined) ?? { indices: [], values: [] };
    const presence = this.#numberOf(PRESENCE);
    const weights = indices.map((word, i) => [word, Number((values[i] ?? 0).toFixed(6))] as const);
    return Object.fromEntries(weights.filter(([word]) => word !== presence).map(([word, weight]) => [weightName(word), weight]));
  }

  /** null if the text has no word. */
  ofQuery(text: string): SparseVector | null {
    const indices = [...new Set(queryTerms(text).map((word) => this.#numberOf(word)))];
    return indices.length === 0 ? null : { indices, values: indices.map(() => 1) };
  }

  #wordsOf(texts: readonly string[]): SparseVector | null {
    const { counts, words } = termCounts(texts);
    if (words === 0) return null;
    const weights = new Map<number, number>();
    for (const [word, count] of counts) {
      const number = this.#numberOf(word);
      // If two words share a number (a chance of one in 2^32), the more frequent one counts.
      weights.set(number, Math.max(weights.get(number) ?? 0, bm25Weight(count, words)));
    }
    weights.set(this.#numberOf(PRESENCE), 1);
    return { indices: [...weights.keys()], values: [...weights.values()] };
  }

  /** 32-bit MurmurHash3 over UTF-16 code units. */
  #numberOf(word: string): number {
    let hash = this.#seed;
    for (let i = 0; i < word.length; i += 1) {
      const mixed = Math.imul(word.charCodeAt(i), 0xcc9e2d51);
      hash ^= Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
      hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
    }
    hash ^= word.length;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    const number = (hash ^ (hash >>> 16)) >>> 0;
    return number === ANCHOR_WORD ? 1 : number;
  }
}

export const weightName = (word: number): string => `k${word.toString(36)}`;

/** The vectors that aren't null or all zero. @throws EtudeError EMBEDDING_LENGTH_WRONG */
export function denseOf(vectors: ReadonlyArray<Float32Array | null>, model: Model): number[][] {
  return vectors.flatMap((vector) => {
    if (vector === null) return [];
    requireVector(vector, model);
    return vector.some((value) => value !== 0) ? [Array.from(vector)] : [];
  });
}

/** Maximum estimated size of a request. Half of what Qdrant accepts, since it is an estimate. */
const BYTES_MAX = 16 * 1024 * 1024;
const BYTES_PER_CHAR = 3;
const BYTES_PER_NUMBER = 22;
/** A word's number and weight, both in the vector and in the payload. */
const BYTES_PER_WORD = 64;

export const insertRequests = <T extends { readonly point: Pick<Point, 'payload' | 'vector'> }>(points: readonly T[]) =>
  batchesOf(points, { sizeMax: BYTES_MAX }, ({ point }) => bytesOf(point));

function bytesOf({ payload, vector }: Pick<Point, 'payload' | 'vector'>): number {
  const numbers = Object.values(vector).map((each) =>
    Array.isArray(each) ? each.flat().length * BYTES_PER_NUMBER : (each as SparseVector).indices.length * BYTES_PER_WORD,
  );
  const { content } = payload;
  const chars = typeof content === 'string' ? content.length : 0;
  return numbers.reduce((sum, bytes) => sum + bytes, chars * BYTES_PER_CHAR);
}

/**
 * Computes how much too high the weight of every word is, because the server counts the records of all tenants.
 *
 * A word's weight is ln((N + 1) / (df + 1/2)). df counts only this tenant, whose words have their own numbers. N counts the whole
 * collection. For a tenant with n records, every weight is therefore ln((N + 1) / (n + 1)) too high. The anchor's score reveals N: its word
 * has weight 1 and is in one point only, so df = 1. The presence word is in all n records, so its score reveals n. The server still counts
 * deleted records until it rewrites their segment.
 */
export function surplusOf(anchorScore: number, presenceScore: number): number {
  /** ln(N + 1) */
  const all = anchorScore + Math.log(1.5);
  const counted = Math.round(Math.exp(all - presenceScore) - 0.5);
  return all - Math.log(counted + 1);
}
