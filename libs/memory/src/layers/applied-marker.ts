import type { Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { createHash } from 'node:crypto';
import type { Change, RecordStore } from '../record-store.js';
import { bodyOf } from './stored-body.js';

const KEY_CHARS_MAX = 1_024;

/**
 * The note that a write was applied. Its place is behind what the write changes, in the same list: where a crash came between,
 * the repeat finds the write among those that the changed record has taken (`stored-body.ts`), and adds the note.
 */
export function markApplied(layer: MemoryLayer, scope: Scope, writeId: string, createdAt: number): Extract<Change, { do: 'insert' }> {
  const record = {
    layer,
    kind: 'applied',
    key: markerKey(writeId),
    scope,
    createdAt,
    worth: 0,
    shown: false,
    fields: {},
    title: '',
    text: '',
    sources: [],
    body: bodyOf({}),
  } as const;
  return { do: 'insert', record, indexed: [] };
}

/** Ids are the tenant's, whichever of its agents a write was for. @throws EtudeError TENANT_MISSING */
export async function wasApplied(store: RecordStore, tenant: string, layer: MemoryLayer, writeId: string): Promise<boolean> {
  const scope = requireScope({ tenant, agent: null });
  return (await store.load(scope, layer, 'applied', [markerKey(writeId)])).length > 0;
}

function markerKey(writeId: string): string {
  return writeId.length <= KEY_CHARS_MAX && writeId !== '' ? writeId : createHash('sha256').update(writeId).digest('hex');
}
