import type { Change, RecordStore } from '../../record-store.js';
import { erasedError, findForbidden } from './erasure-marks.js';
import { removeOwned } from './owned-records.js';

/**
 * A store that takes in nothing of owners who were erased after it was made.
 *
 * Before a write the marks of its owners are read, and after it again: a write that began before the mark was there and ended when
 * the erasure had passed takes itself back. Whatever is written before that second look began is found by the erasure, which starts
 * after its mark. So neither of the two looks may be answered from a cache.
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
  const made = changes.flatMap((change) => (change.do === 'insert' && change.record.kind !== 'erasure' ? [change.record] : []));
  if (made.length === 0) return store.write(tenant, changes);
  await refuseErased(store, tenant, made);
  const done = await store.write(tenant, changes);
  await refuseErased(store, tenant, made);
  return done;
}

/** What a writer that was killed between its write and its second look has left goes with the refusal of its repeat. */
async function refuseErased(store: RecordStore, tenant: string, made: Parameters<typeof findForbidden>[2]): Promise<void> {
  const forbidden = await findForbidden(store, tenant, made);
  for (const { owners, at } of forbidden) await removeOwned(store, owners, { createdBefore: at });
  if (forbidden.length > 0) throw erasedError();
}
