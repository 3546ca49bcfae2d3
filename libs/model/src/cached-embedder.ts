import type { Embedder, EmbedderProfile } from '@etude/domain/ports/embedder';
import { abortError } from './abort.js';

/**
 * Keeps the vectors of the texts used last, by model and text, before any other Embedder.
 *
 * A text that is asked for several times at once is embedded once per call. Vectors are shared: don't change them.
 */
export class CachedEmbedder implements Embedder {
  readonly #inner: Embedder;
  readonly #entriesMax: number;
  readonly #vectors = new Map<string, Float32Array>();

  constructor(inner: Embedder, entriesMax = 10_000) {
    this.#inner = inner;
    this.#entriesMax = entriesMax;
  }

  get profile(): EmbedderProfile {
    return this.#inner.profile;
  }

  async embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]> {
    if (signal?.aborted) throw abortError(signal);
    const found = new Map<string, Float32Array>();
    for (const text of new Set(texts)) {
      const vector = this.#vectors.get(this.#key(text));
      if (vector) found.set(text, vector);
    }
    const missing = [...new Set(texts)].filter((text) => !found.has(text));
    const made = missing.length > 0 ? await this.#inner.embed(missing, signal) : [];
    missing.forEach((text, i) => found.set(text, made[i] as Float32Array));
    for (const [text, vector] of found) this.#use(this.#key(text), vector);
    return texts.map((text) => found.get(text) as Float32Array);
  }

  #key(text: string): string {
    return `${this.profile.model}\n${text}`;
  }

  /** A Map keeps the order of insertion: the first key is the one used longest ago. */
  #use(key: string, vector: Float32Array): void {
    this.#vectors.delete(key);
    this.#vectors.set(key, vector);
    const oldest = this.#vectors.keys().next();
    if (this.#vectors.size > this.#entriesMax && !oldest.done) this.#vectors.delete(oldest.value);
  }
}
