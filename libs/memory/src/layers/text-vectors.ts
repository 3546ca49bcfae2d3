import { EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { IndexedText } from '../record-store.js';

/**
 * Texts with their vectors; null for what has no direction, such as a text without a word in it. Blank ones are not sent.
 *
 * @throws EtudeError EMBEDDING_LENGTH_WRONG, MODEL_UNAVAILABLE
 */
export async function embedTexts(embedder: Embedder, texts: readonly string[], signal?: AbortSignal): Promise<readonly IndexedText[]> {
  const told = texts.filter(isTold);
  const vectors = told.length === 0 ? [] : await embedder.embed(told, signal);
  requireVectors(embedder, vectors, told.length);
  const remaining = vectors.values();
  return texts.map((text) => ({ text, vector: isTold(text) ? directed(remaining.next().value) : null }));
}

function isTold(text: string): boolean {
  return text.trim() !== '';
}

function directed(vector: Float32Array | undefined): Float32Array | null {
  return vector?.some((value) => value !== 0) ? vector : null;
}

/** Whatever an embedder's types promise: some answer with holes. */
function requireVectors(
  { profile: { model, dimension } }: Embedder,
  vectors: ReadonlyArray<Float32Array | null | undefined>,
  texts: number,
): void {
  const isWrong = (vector: Float32Array | null | undefined) => vector?.length !== dimension || !vector.every(Number.isFinite);
  const at = Array.from(vectors).findIndex(isWrong);
  if (vectors.length === texts && at === -1) return;
  throw new EtudeError(
    'EMBEDDING_LENGTH_WRONG',
    `${model} answered ${vectors.length} vectors for ${texts} texts, with ${at === -1 ? dimension : (vectors[at]?.length ?? 0)} numbers instead of ${dimension} finite ones; check the embedder's settings`,
  );
}
