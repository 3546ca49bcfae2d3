import type { Transition } from '@etude/contracts/memory';
import type { MemoryRecord, Owners, RecordStore, StoredRecord } from '../../record-store.js';
import { idOf } from '../memory-search.js';
import { bodyOf, parseBody } from '../stored-body.js';
import { LAYERS } from './owned-records.js';
import { updateEach } from './update-each.js';

/**
 * Cuts what the transitions of others have recalled of these owners: a task of nobody in particular sees what is every user's, and keeps
 * it with its attempt. Goes before the removal, since what was recalled is known by its id.
 *
 * @param before ms since 1970; of what they have made since, nothing is cut
 * @returns how many transitions were changed
 */
export async function cutRecalled(store: RecordStore, owners: Owners, before: number, signal?: AbortSignal): Promise<number> {
  if (owners.agent === undefined && owners.user === undefined) return 0;
  const erased = await namesOf(store, owners, before, signal);
  if (erased.size === 0) return 0;
  let changed = 0;
  for await (const page of store.each({ tenant: owners.tenant }, 'episodic', { kinds: ['transition'] })) {
    signal?.throwIfAborted();
    const others = page.filter(({ scope }) => !isOwner(owners, scope));
    changed += await updateEach(store, others, (record) => withoutRecalled(record, erased));
  }
  return changed;
}

async function namesOf(store: RecordStore, owners: Owners, before: number, signal?: AbortSignal): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const layer of LAYERS)
    for await (const page of store.each(owners, layer, { createdBefore: before })) {
      signal?.throwIfAborted();
      for (const record of page) names.add(nameOf(record.scope, layer, idOf(record)));
    }
  return names;
}

function withoutRecalled(record: StoredRecord, erased: ReadonlySet<string>): MemoryRecord | null {
  const { value, taken } = parseBody<Transition>(record);
  const recalled = value.recalled.filter(({ layer, id }) => !erased.has(nameOf(value.scope, layer, id)));
  return recalled.length === value.recalled.length ? null : { ...record, body: bodyOf({ ...value, recalled }, taken) };
}

/** A task recalls what is its agent's; and of skills, which are numbered for each user, no other user's. */
function nameOf({ agent, user }: StoredRecord['scope'], layer: string, id: string): string {
  return `${agent} ${layer} ${id}${layer === 'procedural' ? ` ${user ?? ''}` : ''}`;
}

function isOwner({ agent, user }: Owners, scope: StoredRecord['scope']): boolean {
  return (agent === undefined || agent === scope.agent) && (user === undefined || user === scope.user);
}
