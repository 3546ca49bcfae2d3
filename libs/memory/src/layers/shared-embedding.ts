import type { Embedder } from '@etude/domain/ports/embedder';

/** Recalling looks for one text in three layers at the same time: embeds it once for all that wait for it. */
export function sharedEmbedding(embedder: Embedder): Embedder {
  const waiting = new Map<string, Promise<readonly Float32Array[]>>();
  return {
    get profile() {
      return embedder.profile;
    },
    async embed(texts, signal) {
      const [only] = texts;
      if (only === undefined || texts.length > 1 || signal !== undefined) return embedder.embed(texts, signal);
      const known = waiting.get(only);
      if (known !== undefined) return known;
      const embedding = embedder.embed(texts).finally(() => waiting.delete(only));
      waiting.set(only, embedding);
      return embedding;
    },
  };
}
