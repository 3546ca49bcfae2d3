import type { Change, RecordStore } from '../../record-store.js';
import { erasedError, findForbidden, type Forbidden } from './erasure-marks.js';
import { removeOwned } from './owned-records.js';

/**
 * A store that takes in nothing of owners who were erased after it was made.
 *
 * Before a write the marks of its owners are read, and after it again: a write that began before the mark was there and ended when
 * the erasure had passed takes itself back. Whatever is written before that second look began is found by the erasure, which starts
 * after its mark. So neither of the two looks may be answered from a cache.
 *
 * A record that the erasure has yet to remove is gone for who would change it: what its owners tell anew is kept in a record of its own.
 * @throws EtudeError ABORTED from `write`; see `isErased`
 */
export function guardedStore(store: RecordStore): RecordStore {
  const write: RecordStore['write'] = (tenant, changes) => writeUnlessErased(store, tenant, changes);
  return new Proxy(store, {
    get(target, name) {
      if (name === 'write') return write;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

async function writeUnlessErased(store: RecordStore, tenant: string, changes: readonly Change[]): Promise<readonly boolean[]> {
  const all = changes.filter(({ record }) => record.kind !== 'erasure');
  if (all.length === 0) return store.write(tenant, changes);
  const made = all.filter((change) => change.do === 'insert').map(({ record }) => record);
  const changed = all.filter((change) => change.do !== 'insert').map(({ record }) => record);
  await refuseErased(store, tenant, made);
  if (await removeForbidden(store, await findForbidden(store, tenant, changed))) return changes.map(() => false);
  const done = await store.write(tenant, changes);
  await refuseErased(store, tenant, made);
  return done;
}

/** What a writer that was killed between its write and its second look has left goes with the refusal of its repeat. */
async function refuseErased(store: RecordStore, tenant: string, made: Parameters<typeof findForbidden>[2]): Promise<void> {
  if (await removeForbidden(store, await findForbidden(store, tenant, made))) throw erasedError();
}

/** Whether there was somebody. */
async function removeForbidden(store: RecordStore, forbidden: readonly Forbidden[]): Promise<boolean> {
  for (const { owners, at } of forbidden) await removeOwned(store, owners, { createdBefore: at });
  return forbidden.length > 0;
}
