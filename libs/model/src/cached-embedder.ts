import { createHash } from 'node:crypto';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/embedder';
import { abortError } from './server-answer.js';

/** Bytes of one entry beside its numbers: the digest, the vector's own object and buffer, the place in the map. */
const ENTRY_BYTES = 250;

/**
 * Keeps the vectors of the texts used last, by model and digest of the text, before any other Embedder.
 *
 * A text that is asked for several times at once is embedded once per call. Vectors are shared: don't change them.
 */
export class CachedEmbedder implements Embedder {
  readonly #entriesMax: number;
  /** A Map keeps the order of insertion: the first key is the one used longest ago. */
  readonly #vectors = new Map<string, Float32Array>();

  /** @param bytesMax of vectors and keys together, about */
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
    const asked = new Map(texts.map((text) => [this.#key(text), text]));
    const found = new Map([...asked.keys()].flatMap((key) => this.#entry(key)));
    const missing = [...asked].filter(([key]) => !found.has(key));
    const made =
      missing.length > 0
        ? await this.inner.embed(
            missing.map(([, text]) => text),
            signal,
          )
        : [];
    missing.forEach(([key], i) => found.set(key, made[i] as Float32Array));
    for (const [key, vector] of found) {
      this.#vectors.delete(key);
      this.#vectors.set(key, vector);
    }
    for (const oldest of this.#vectors.keys()) {
      if (this.#vectors.size <= this.#entriesMax) break;
      this.#vectors.delete(oldest);
    }
    return texts.map((text) => found.get(this.#key(text)) as Float32Array);
  }

  #entry(key: string): Array<[string, Float32Array]> {
    const vector = this.#vectors.get(key);
    return vector ? [[key, vector]] : [];
  }

  /** A digest: a key as long as its text would make the cache as large as the texts. */
  #key(text: string): string {
    return createHash('sha256').update(`${this.profile.model}\n`).update(text, 'utf16le').digest('base64');
  }
}
