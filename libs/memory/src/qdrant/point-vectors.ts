import type { IndexedText, StoreOptions } from '../record-store.js';
import { requireVector } from '../vector-models.js';
import { ANCHOR_WORD, vectorName, WORDS } from './collections.js';
import type { Point } from './tenant-points.js';
import { bm25Weight, queryTerms, termCounts } from '@etude/domain/retrieval/bm25';
import { createHmac } from 'node:crypto';

export interface SparseVector {
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

type Model = StoreOptions['model'];
/** A word that every text has that has any: no text has it by itself. */
const PRESENCE = '';

/**
 * Vectors of texts as Qdrant takes them.
 *
 * Words become numbers that differ from tenant to tenant, and from store to store by a secret: so the frequency of a word,
 * which Qdrant counts over a whole collection, is that of one tenant, and nobody can make words that are counted as another's.
 */
export class PointVectors {
  readonly #seed: number;

  constructor(secret: string, tenant: string) {
    this.#seed = createHmac('sha256', secret).update(tenant).digest().readUInt32LE();
  }

  /** By name, of texts that were searched; nothing where there is neither a word nor a direction. */
  of(indexed: readonly IndexedText[], model: Model): Readonly<Record<string, unknown>> {
    const words = this.#wordsOf(indexed.map(({ text }) => text));
    const dense = denseOf(
      indexed.map(({ vector }) => vector),
      model,
    );
    return { ...(words === null ? {} : { [WORDS]: words }), ...(dense.length === 0 ? {} : { [vectorName(model.name)]: dense }) };
  }

  /** Finds all that have words, so its weight tells how many a server counts, with those that it has deleted since. */
  ofPresence(): SparseVector {
    return { indices: [this.#numberOf(PRESENCE)], values: [1] };
  }

  /** The weights of a point's words once more, to be read one by one: a sparse vector is only given whole. */
  weightsIn(vector: Readonly<Record<string, unknown>>): Readonly<Record<string, number>> {
    const { indices, values } = (vector[WORDS] as SparseVector | undefined) ?? { indices: [], values: [] };
    const presence = this.#numberOf(PRESENCE);
    const weights = indices.map((word, i) => [word, Number((values[i] ?? 0).toFixed(6))] as const);
    return Object.fromEntries(weights.filter(([word]) => word !== presence).map(([word, weight]) => [weightName(word), weight]));
  }

  /** null where the text has no word. */
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
      // Of two words with one number the more frequent counts; they are one in four thousand million.
      weights.set(number, Math.max(weights.get(number) ?? 0, bm25Weight(count, words)));
    }
    weights.set(this.#numberOf(PRESENCE), 1);
    return { indices: [...weights.keys()], values: [...weights.values()] };
  }

  /** MurmurHash3 of 32 bits, over code units. */
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

/** Name of a word's weight within the payload's `w`. */
export const weightName = (word: number): string => `k${word.toString(36)}`;

/** Those that have a direction. @throws EtudeError EMBEDDING_LENGTH_WRONG */
export function denseOf(vectors: ReadonlyArray<Float32Array | null>, model: Model): number[][] {
  return vectors.flatMap((vector) => {
    if (vector === null) return [];
    requireVector(vector, model);
    return vector.some((value) => value !== 0) ? [Array.from(vector)] : [];
  });
}

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
    const more = bytesOf(each.point);
    if (some.length > 0 && bytes + more > BYTES_MAX) {
      yield some;
      [some, bytes] = [[], 0];
    }
    some.push(each);
    bytes += more;
  }
  if (some.length > 0) yield some;
}

/** Of the content, and of its vectors: several dense ones, or words. */
function bytesOf({ payload, vector }: Pick<Point, 'payload' | 'vector'>): number {
  const numbers = Object.values(vector).map((each) =>
    Array.isArray(each) ? each.flat().length * BYTES_PER_NUMBER : (each as SparseVector).indices.length * BYTES_PER_WORD,
  );
  const { content } = payload;
  const chars = typeof content === 'string' ? content.length : 0;
  return numbers.reduce((sum, bytes) => sum + bytes, chars * BYTES_PER_CHAR);
}

/**
 * How many records with words a tenant has, with those that it has deleted: a server counts them until it writes their segment anew. In
 * the weight of the word that all records have, ln((N + 1) / (df + 1/2)), df is just that.
 */
export function countedIn(anchorScore: number, presenceScore: number): number {
  return Math.round(Math.exp(allIn(anchorScore) - presenceScore) - 0.5);
}

/**
 * How much a server that counts records of all tenants gives each word too much.
 *
 * The weight of a word is ln((N + 1) / (df + 1/2)). df is the tenant's, since its words have numbers of their own, and N is
 * that of the collection: so with n records of the tenant every word has ln((N + 1) / (n + 1)) too much, whichever it is. N as
 * the server counts it is seen in the score of the anchor: one point that has a word of its own, so df = 1 and the weight 1.
 */
export function surplusOf(anchorScore: number, worded: number): number {
  return allIn(anchorScore) - Math.log(worded + 1);
}

/** ln(N + 1) */
function allIn(anchorScore: number): number {
  return anchorScore + Math.log(1.5);
}
