import { createHash } from 'node:crypto';
import { EtudeError } from '@etude/contracts/errors';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/embedder';
import { abortError } from './http-client.js';

export interface CacheLimits {
  readonly entriesMax: number;
  /** Of vectors and keys together, about. */
  readonly bytesMax: number;
}

/** Of one entry beside its numbers: the digest, the vector's own object and buffer, the place in the map. */
const ENTRY_BYTES = 250;

/**
 * Keeps the vectors of the texts used last, by model and digest of the text, before any other Embedder.
 *
 * A text that is asked for several times at once is embedded once per call. Vectors are shared: don't change them.
 */
export class CachedEmbedder implements Embedder {
  readonly #inner: Embedder;
  readonly #limits: CacheLimits;
  readonly #vectors = new Map<string, Float32Array>();
  #bytes = 0;

  constructor(inner: Embedder, limits: CacheLimits = { entriesMax: 10_000, bytesMax: 32 * 1024 * 1024 }) {
    this.#inner = inner;
    this.#limits = limits;
  }

  get profile(): EmbedderProfile {
    return this.#inner.profile;
  }

  async embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]> {
    if (signal?.aborted) throw abortError(signal);
    const found = new Map<string, Float32Array>();
    const missing = new Map<string, string>();
    const keys = texts.map((text) => this.#key(text));
    for (const [i, key] of keys.entries()) {
      const vector = this.#vectors.get(key);
      if (vector) found.set(key, vector);
      else missing.set(key, texts[i] ?? '');
    }
    const made = missing.size > 0 ? await this.#inner.embed([...missing.values()], signal) : [];
    [...missing.keys()].forEach((key, i) => found.set(key, this.#required(made[i])));
    for (const [key, vector] of found) this.#use(key, vector);
    return keys.map((key) => found.get(key) as Float32Array);
  }

  /** Whatever an embedder's types promise: some answer with holes. @throws EtudeError EMBEDDING_LENGTH_WRONG */
  #required(vector: Float32Array | null | undefined): Float32Array {
    if (vector !== undefined && vector !== null) return vector;
    throw new EtudeError(
      'EMBEDDING_LENGTH_WRONG',
      `${this.profile.model} answered no vector for one of the texts; check the embedder's settings`,
    );
  }

  /** A digest: a key as long as its text would make the cache as large as the texts. */
  #key(text: string): string {
    return createHash('sha256').update(`${this.profile.model}\n`).update(text, 'utf16le').digest('base64');
  }

  /** A Map keeps the order of insertion: the first key is the one used longest ago. */
  #use(key: string, vector: Float32Array): void {
    this.#drop(key);
    this.#vectors.set(key, vector);
    this.#bytes += bytesOf(vector);
    for (const oldest of this.#vectors.keys()) {
      if (this.#vectors.size <= this.#limits.entriesMax && this.#bytes <= this.#limits.bytesMax) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    const vector = this.#vectors.get(key);
    if (!vector) return;
    this.#vectors.delete(key);
    this.#bytes -= bytesOf(vector);
  }
}

const bytesOf = (vector: Float32Array) => vector.byteLength + ENTRY_BYTES;
