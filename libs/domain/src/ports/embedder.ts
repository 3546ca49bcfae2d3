/**
 * Turns texts into vectors of one length.
 *
 * @throws EtudeError EMBEDDING_LENGTH_WRONG, MODEL_UNAVAILABLE
 * Not in it: caching, search.
 */
export interface Embedder {
  readonly profile: EmbedderProfile;
  embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]>;
}

export interface EmbedderProfile {
  /** Stored with the vectors. Starting with another model is refused. */
  readonly model: string;
  readonly dimension: number;
  /** Weight of vector similarity in fused search, 0 to 1; BM25 has the rest. */
  readonly denseWeight: number;
  /** Maps a raw cosine to 0 to 1, monotonically: 0.7 means "probably the same task", 0.9 "nearly the same words". */
  calibrate(cosine: number): number;
}
