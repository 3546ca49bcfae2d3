import type { ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { Memory, PlainRecord } from '../memory.js';
import type { RecordKind, RecordStore } from '../record-store.js';
import { idOf } from './memory-search.js';
import { parseBody } from './stored-body.js';

type Layer = Parameters<Memory['get']>[1];

/** What search finds, by layer; of several records with one id, the first kind is meant. */
const FOUND_KINDS: Readonly<Record<Layer, readonly RecordKind[]>> = {
  episodic: ['episode', 'transition'],
  semantic: ['fact', 'chunk', 'document', 'summary', 'reflection'],
};

/** Any record by the id of its hit; see `Memory.get`. */
export async function getRecord(store: RecordStore, scope: ReadScope, layer: Layer, id: string): Promise<PlainRecord | null> {
  requireScope(scope);
  const kinds = FOUND_KINDS[layer];
  const found = await store.find(scope, layer, { kinds, where: { id } }, { order: 'newest', limit: kinds.length });
  const known = found.length > 0 ? found : (await Promise.all(kinds.map((kind) => store.load(scope, layer, kind, [id])))).flat();
  const [record] = known.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
  if (record === undefined) return null;
  const { kind, createdAt, scope: owner } = record;
  return { id: idOf(record), layer, kind, scope: owner, createdAt, fields: parseBody<Record<string, unknown>>(record).value };
}
