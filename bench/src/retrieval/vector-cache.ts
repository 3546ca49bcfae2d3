import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Embedder, EmbedderProfile } from '@etude/domain/ports/model';

const DIGEST_BYTES = 32;
const BATCH = 16;

/** Keeps vectors in a file of the cache folder, so that a set is embedded only once per model. */
export class VectorCache implements Embedder {
  readonly profile: EmbedderProfile;
  readonly #vectors = new Map<string, Float32Array>();
  readonly #path: string;

  constructor(
    private readonly inner: Embedder,
    cacheDir: string,
  ) {
    this.profile = inner.profile;
    mkdirSync(cacheDir, { recursive: true });
    this.#path = join(cacheDir, `vectors-${inner.profile.model.replaceAll(/[^\w.-]+/g, '_')}-${inner.profile.dimension}`);
    if (existsSync(this.#path)) this.#read(readFileSync(this.#path));
  }

  async embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]> {
    const missing = [...new Map(texts.map((text) => [digestOf(text), text]))].filter(([digest]) => !this.#vectors.has(digest));
    for (let i = 0; i < missing.length; i += BATCH) await this.#add(missing.slice(i, i + BATCH), signal);
    return texts.map((text) => this.#vectors.get(digestOf(text)) ?? new Float32Array(this.profile.dimension));
  }

  async #add(missing: ReadonlyArray<readonly [digest: string, text: string]>, signal?: AbortSignal): Promise<void> {
    const made = await this.inner.embed(
      missing.map(([, text]) => text),
      signal,
    );
    missing.forEach(([digest], i) => {
      const vector = made[i];
      if (!vector) return;
      this.#vectors.set(digest, vector);
      appendFileSync(this.#path, Buffer.concat([Buffer.from(digest, 'hex'), Buffer.from(Float32Array.from(vector).buffer)]));
    });
  }

  /** Reads the stored vectors, except for a truncated one at the end. */
  #read(bytes: Buffer): void {
    const entry = DIGEST_BYTES + this.profile.dimension * 4;
    for (let at = 0; at + entry <= bytes.length; at += entry) {
      const vector = new Float32Array(new Uint8Array(bytes.subarray(at + DIGEST_BYTES, at + entry)).buffer);
      this.#vectors.set(bytes.subarray(at, at + DIGEST_BYTES).toString('hex'), vector);
    }
  }
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
