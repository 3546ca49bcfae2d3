import { EtudeError } from '@etude/contracts/errors';
import type { MemoryRecord } from '../record-store.js';

/** What stands in a record's body: the value, and the ids of the writes that changed it last. */
export interface StoredBody<T> {
  readonly value: T;
  /** Oldest first. */
  readonly taken: readonly string[];
}

/** A write that is repeated after so many others on the same record is told by its `applied` record alone. */
export const TAKEN_MAX = 256;

export function bodyOf(value: object, taken: readonly string[] = []): string {
  return JSON.stringify(taken.length === 0 ? { value } : { value, taken });
}

/** @throws EtudeError MEMORY_UNAVAILABLE for what no layer has written */
export function parseBody<T>({ layer, kind, key, body }: Pick<MemoryRecord, 'layer' | 'kind' | 'key' | 'body'>): StoredBody<T> {
  try {
    const { value, taken = [] } = JSON.parse(body) as { value: T; taken?: readonly string[] };
    if (value !== undefined) return { value, taken };
  } catch (cause) {
    throw damaged(layer, kind, key, cause);
  }
  throw damaged(layer, kind, key, null);
}

export function withTaken(taken: readonly string[], writeId: string): readonly string[] {
  return [...taken, writeId].slice(-TAKEN_MAX);
}

function damaged(layer: string, kind: string, key: string, cause: unknown): EtudeError {
  const message = `the ${layer} record ${kind} ${JSON.stringify(key)} is damaged; restore the store from a copy`;
  return new EtudeError('MEMORY_UNAVAILABLE', message, {}, { cause });
}
