import type { MemoryLayer } from '@etude/contracts/task';
import type { ReadScope } from '@etude/domain/ports/memory';
import type { RecordFilter, RecordStore, StoredRecord } from '../record-store.js';

/** All that a reader sees, by key, read a page at a time. */
export async function* everyRecord(
  store: RecordStore,
  scope: ReadScope,
  layer: MemoryLayer,
  filter: RecordFilter,
  { size, afterKey }: { readonly size: number; readonly afterKey?: string },
): AsyncGenerator<StoredRecord> {
  for (let after = afterKey; ;) {
    const page = await store.find(scope, layer, filter, { order: 'key', limit: size, ...(after === undefined ? {} : { afterKey: after }) });
    yield* page;
    after = page.at(-1)?.key;
    if (page.length < size) return;
  }
}
