import { createHash } from 'node:crypto';
import { abortError } from '@etude/contracts/errors';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/model';

/** An entry needs about this many bytes besides its vector, for the digest, the objects and the map. */
const ENTRY_BYTES = 250;

/**
 * A cache in front of another Embedder. It keeps the vectors of the texts used last, by model and digest of the text.
 *
 * If two calls at the same time miss the same text, both embed it. The returned vectors are shared, so callers must not change them.
 */
export class CachedEmbedder implements Embedder {
  readonly #entriesMax: number;
  /** The vectors in order of use. The first one was used longest ago. */
  readonly #vectors = new Map<string, Float32Array>();

  /** @param bytesMax approximate limit for vectors and keys together */
  constructor(
    private readonly inner: Embedder,
    bytesMax = 32 * 1024 * 1024,
  ) {
    this.#entriesMax = Math.floor(bytesMax / (4 * inner.profile.dimension + ENTRY_BYTES));
  }

  get profile(): EmbedderProfile {
    return this.inner.profile;
  }

  async embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]> {
    if (signal?.aborted) throw abortError(signal);
    const keys = texts.map((text) => this.#key(text));
    const vectors = new Map(keys.map((key) => [key, this.#vectors.get(key)]));
    const missing = new Map(keys.map((key, i) => [key, texts[i] ?? ''] as const).filter(([key]) => vectors.get(key) === undefined));
    const made = missing.size > 0 ? await this.inner.embed([...missing.values()], signal) : [];
    [...missing.keys()].forEach((key, i) => vectors.set(key, made[i]));
    for (const [key, vector] of vectors) {
      this.#vectors.delete(key);
      this.#vectors.set(key, vector as Float32Array);
    }
    for (const oldest of this.#vectors.keys()) {
      if (this.#vectors.size <= this.#entriesMax) break;
      this.#vectors.delete(oldest);
    }
    return keys.map((key) => vectors.get(key) as Float32Array);
  }

  /** The key is a digest, because texts as keys would make the cache as large as the texts. */
  #key(text: string): string {
    return createHash('sha256').update(`${this.profile.model}\n`).update(text, 'utf16le').digest('base64');
  }
}
