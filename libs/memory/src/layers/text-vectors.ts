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

function requireVectors({ profile: { model, dimension } }: Embedder, vectors: readonly Float32Array[], texts: number): void {
  const wrong = vectors.find((vector) => vector.length !== dimension || !vector.every(Number.isFinite));
  if (vectors.length === texts && wrong === undefined) return;
  throw new EtudeError(
    'EMBEDDING_LENGTH_WRONG',
    `${model} answered ${vectors.length} vectors for ${texts} texts, with ${wrong?.length ?? dimension} numbers instead of ${dimension} finite ones; check the embedder's settings`,
  );
}
