import type { Model, VectorModel } from './record-store.js';
import { embedderSetting } from '@etude/contracts/embedder-names';
import { EtudeError } from '@etude/contracts/errors';

/** Returns the sum of the squares. @throws EtudeError EMBEDDING_LENGTH_WRONG, also for a missing vector and for NaN, which some embedders return */
export function requireVector(vector: Float32Array | null | undefined, { name, dimension }: Model): number {
  let squares = 0;
  for (const value of vector ?? []) squares += value * value;
  // Tests only the sum: testing each number takes four times as long, and every stored vector is checked.
  if (vector?.length === dimension && Number.isFinite(squares)) return squares;
  const message = `a vector of ${name} has ${vector?.length ?? 0} numbers, but must have ${dimension}, all finite; check ETUDE_EMBEDDING_DIMENSION`;
  throw new EtudeError('EMBEDDING_LENGTH_WRONG', message);
}

/** Requires complete vectors of this model and dimension. @param where names the store in the message @throws EtudeError MEMORY_VERSION */
export function requireReadable(stored: readonly VectorModel[], { name, dimension }: Model, where: string): void {
  const known = stored.find((model) => model.name === name);
  if (known?.state === 'ready' && known.dimension === dimension) return;
  const ready = stored.filter(({ state }) => state === 'ready');
  const has = ready.map((model) => `${model.name} (${model.dimension} dimensions)`).join(' and ');
  const settings = ready.map((model) => embedderSetting(model.name, model.dimension)).join(' or ');
  const message =
    `${where} has complete vectors of ${has}, but ${name} (${dimension} dimensions) is configured. Start every service ` +
    `with ${settings} instead. If you want to change to ${name}, run "etude memory reembed" after this start`;
  throw new EtudeError('MEMORY_VERSION', message);
}

/** @throws EtudeError NOT_FOUND */
export function storedModel<M extends { readonly name: string }>(stored: readonly M[], name: string, where: string): M {
  const known = stored.find((model) => model.name === name);
  if (known !== undefined) return known;
  throw new EtudeError('NOT_FOUND', `${where} has no vectors of ${name}; see \`etude memory stats\` for the models that it has`);
}
