import { showsRecord } from '../layers/item-shows.js';
import { parseBody, updateEach } from '../layers/records.js';
import type { Owners, RecordKind, RecordStore, StoredRecord } from '../record-store.js';
import { asArchived, FORGETTABLE } from './archive-records.js';
import { walkOwned } from './owned-records.js';
import type { ItemShows } from '@etude/contracts/memory';
import { reasonToArchive } from '@etude/domain/lift/effects';
import type { Clock } from '@etude/domain/ports/clock';

/**
 * Archives items that make first attempts worse, and notes the reason in their counters. An item that was archived before stays as it is,
 * because somebody may have restored it. Returns how many were archived.
 */
export async function archiveHarmful(store: RecordStore, clock: Clock, owners: Owners, signal?: AbortSignal): Promise<number> {
  let archived = 0;
  for await (const page of walkOwned(store, owners, { kinds: ['shows'] }, { signal }))
    for (const counters of page) {
      const { value } = parseBody<ItemShows>(counters);
      const reason = value.archived === undefined ? reasonToArchive(value) : null;
      if (reason === null) continue;
      archived += await updateEach(store, await itemsOf(store, counters, value), (item) => (item.shown ? asArchived(item) : null));
      const note = { at: clock.now(), reason };
      await updateEach(store, [counters], (record) => {
        const { value: current, taken } = parseBody<ItemShows>(record);
        return showsRecord(record.layer, { ...current, archived: note }, taken);
      });
    }
  return archived;
}

/** The shown record of an item; none for passages of documents and turns, which people add and remove. */
async function itemsOf(store: RecordStore, { layer, scope }: StoredRecord, { kind, id }: ItemShows): Promise<readonly StoredRecord[]> {
  const recordKind = FORGETTABLE.find((one: RecordKind) => one === kind);
  if (recordKind === undefined) return [];
  const byId = { kinds: [recordKind], where: { id }, shown: true };
  const found = await store.find(scope, layer, byId, { order: 'newest', limit: 10 });
  const items = found.length > 0 ? found : await store.load(scope, layer, recordKind, [id]);
  return items.filter((item) => item.scope.agent === scope.agent && item.scope.user === scope.user);
}
