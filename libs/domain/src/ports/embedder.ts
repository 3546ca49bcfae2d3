/**
 * Texts to vectors, all of one length.
 *
 * @throws EtudeError EMBEDDING_LENGTH_WRONG, MODEL_UNAVAILABLE
 * Not in it: caching, search.
 */
export interface Embedder {
  readonly profile: EmbedderProfile;
  embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]>;
}

export interface EmbedderProfile {
  /** Stored with the collection; another one is refused at start. */
  readonly model: string;
  readonly dimension: number;
  /** Weight of meaning against words in fused search, 0 to 1. */
  readonly denseWeight: number;
  /** Maps a raw cosine so that 0.7 means "probably the same task" and 0.9 "nearly the same words". Monotone, into 0 to 1. */
  calibrate(cosine: number): number;
}
