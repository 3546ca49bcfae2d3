import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { PlainRecord } from '../memory.js';
import type { RecordKind, RecordStore, StoredRecord } from '../record-store.js';
import { idOf } from './memory-search.js';
import { parseBody } from './stored-body.js';

/** What search finds, by layer; of several records with one id, the first kind is meant. */
const FOUND_KINDS: Readonly<Record<MemoryLayer, readonly RecordKind[]>> = {
  episodic: ['episode', 'transition'],
  semantic: ['fact', 'chunk', 'document', 'summary', 'reflection'],
  procedural: ['skill'],
};

/** Of skills of several owners. */
const SAME_ID_MAX = 64;

/**
 * Any record by the id of its hit, the reader's own before nobody's; see `Memory.get`. A skill also by its name, `sum_even` or `skills/sum_even`, which is its newest
 * version.
 */
export async function getRecord(store: RecordStore, scope: ReadScope, layer: MemoryLayer, id: string): Promise<PlainRecord | null> {
  requireScope(scope);
  const kinds = FOUND_KINDS[layer];
  const found = await store.find(scope, layer, { kinds, where: { id } }, { order: 'newest', limit: SAME_ID_MAX });
  const known = found.length > 0 ? found : (await Promise.all(kinds.map((kind) => store.load(scope, layer, kind, [id])))).flat();
  const isOwn = (one: StoredRecord) => Number(typeof scope.user === 'string' && one.scope.user === scope.user);
  const [record] = known.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || isOwn(b) - isOwn(a));
  if (record !== undefined) return plainRecord(record);
  return layer === 'procedural' ? newestSkill(store, scope, id.replace(/^skills\//, '')) : null;
}

async function newestSkill(store: RecordStore, scope: ReadScope, name: string): Promise<PlainRecord | null> {
  const where = name.includes('@') ? { id: name } : { name };
  const [newest] = await store.find(scope, 'procedural', { kinds: ['skill'], where }, { order: 'newest', limit: 1 });
  return newest === undefined ? null : plainRecord(newest);
}

function plainRecord(record: StoredRecord): PlainRecord {
  const { layer, kind, scope, createdAt } = record;
  return { id: idOf(record), layer, kind, scope, createdAt, fields: parseBody<Record<string, unknown>>(record).value };
}
