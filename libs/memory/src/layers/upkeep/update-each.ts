import type { MemoryRecord, RecordStore, StoredRecord } from '../../record-store.js';

const ATTEMPTS_MAX = 20;

/**
 * Changes each of these records, of one tenant and layer, at the revision that it has by then.
 *
 * @param change null: this one stays as it is
 * @returns how many were changed; what is gone by then, or always was faster, is not
 */
export async function updateEach(
  store: RecordStore,
  records: readonly StoredRecord[],
  change: (record: StoredRecord) => MemoryRecord | null,
): Promise<number> {
  let changed = 0;
  for (const record of records) if (await updateOne(store, record, change)) changed += 1;
  return changed;
}

async function updateOne(
  store: RecordStore,
  record: StoredRecord,
  change: (record: StoredRecord) => MemoryRecord | null,
): Promise<boolean> {
  const { tenant } = record.scope;
  let current: StoredRecord | undefined = record;
  for (let attempt = 0; attempt < ATTEMPTS_MAX && current !== undefined; attempt += 1) {
    const changed = change(current);
    if (changed === null) return false;
    const [done] = await store.write(tenant, [{ do: 'update', record: changed, revision: current.revision }]);
    if (done === true) return true;
    [current] = await store.load({ tenant, agent: null }, record.layer, record.kind, [record.key]);
  }
  return false;
}
