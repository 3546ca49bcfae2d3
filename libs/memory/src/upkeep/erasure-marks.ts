import { putRecord, untilTaken, loadOne } from '../layers/records.js';
import { markApplied } from '../layers/repeats.js';
import type { MemoryRecord, RecordStore } from '../record-store.js';
import { type Erasable, nameOfRecord, removeOwned } from './owned-records.js';
import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import { hash } from 'node:crypto';

/** The erasures that would cover some records, by the key of the mark. `at`: when the oldest of these records was made, in ms since 1970. */
type Erasables = ReadonlyMap<string, { readonly owners: Erasable; readonly at: number }>;

/** From now on, refuses writes of these owners' records made before `at`. The mark is on disk when this returns. A later mark is kept. */
export async function forbid(store: RecordStore, owners: Erasable, at: number): Promise<void> {
  await untilTaken('the mark of an erasure', async () => {
    const known = await loadOne(store, { tenant: owners.tenant, agent: null }, 'semantic', 'erasure', markKey(owners));
    if (known !== null && known.createdAt >= at) return true;
    return (await putRecord(store, markRecord(owners, at), known)) || null;
  });
}

function erasablesOf(made: readonly MemoryRecord[]): Erasables {
  const oldest = new Map<string, { owners: Erasable; at: number }>();
  const note = (owners: Erasable, at: number) => {
    const key = markKey(owners);
    const known = oldest.get(key);
    if (known === undefined || known.at > at) oldest.set(key, { owners, at });
  };
  for (const ofOwner of Map.groupBy(made, ({ scope: { agent, user } }) => JSON.stringify([agent, user])).values()) {
    const at = Math.min(...ofOwner.map(({ createdAt }) => createdAt));
    const { tenant, agent, user } = ofOwner[0]!.scope;
    for (const owners of [{ tenant }, { tenant, agent }, { tenant, user }, { tenant, agent, user }]) note(owners, at);
    for (const record of ofOwner) {
      const named = nameOfRecord(record);
      if (named !== null) note({ tenant, record: named }, record.createdAt);
    }
  }
  return oldest;
}

const ERASED = 'erased';

/** Whether a write was refused because its owner was erased. Such a write is finished; don't retry it. */
export function isErased(error: unknown): boolean {
  return errorCode(error) === 'ABORTED' && errorDetails(error).metadata?.reason === ERASED;
}

/** Contains digests instead of names, because the mark outlives the erased agent or user. */
function markKey({ agent, user, record }: Erasable): string {
  if (record !== undefined) return `record:${hash('sha256', JSON.stringify([record.name, record.agent, record.user]))}`;
  const ofAgent = agent === undefined ? [] : [`agent:${hash('sha256', agent)}`];
  const ofUser = user === undefined ? [] : [`user:${user === null ? 'nobody' : hash('sha256', user)}`];
  return [...ofAgent, ...ofUser].join(' ') || 'tenant';
}

/** The record of a mark. Its scope names no erased owner, and erasing removes every kind of record except marks. */
function markRecord(owners: Erasable, at: number): MemoryRecord {
  const { record } = markApplied('semantic', { tenant: owners.tenant, agent: 'erased', user: null }, markKey(owners), at);
  return { ...record, kind: 'erasure' };
}

/**
 * A store that refuses records of owners who were erased after the record was made.
 *
 * It reads the owners' marks before and after each write. If a write began before the mark was set and ended after the erasure, the second
 * look removes its records. If the second look finds no mark yet, the erasure begins later and finds the records itself. So neither look
 * may use a cache.
 *
 * A record that the erasure has yet to remove can't be changed. Its owner's new data goes into a new record.
 * @throws EtudeError ABORTED from `write`; see `isErased`
 */
export function guardedStore(store: RecordStore): RecordStore {
  return {
    ...store,
    async write(tenant, changes, how) {
      const all = changes.filter(({ record }) => record.kind !== 'erasure');
      if (all.length === 0) return store.write(tenant, changes, how);
      const made = all.filter((change) => change.do === 'insert').map(({ record }) => record);
      const changed = all.filter((change) => change.do !== 'insert').map(({ record }) => record);
      await refuseErased(store, tenant, made);
      if (await removeErased(store, tenant, changed)) return changes.map(() => false);
      const done = await store.write(tenant, changes, how);
      await refuseErased(store, tenant, made);
      return done;
    },
  };
}

/** Also removes the records of a writer that was killed between its write and its second look. */
async function refuseErased(store: RecordStore, tenant: string, made: readonly MemoryRecord[]): Promise<void> {
  if (!(await removeErased(store, tenant, made))) return;
  const message =
    'this record, or its agent, user or tenant, was erased after the record was made, so it is not stored; create a new record to keep it';
  throw new EtudeError('ABORTED', message, { metadata: { reason: ERASED } });
}

/**
 * If some of the records were made before their owner was erased, removes all records of that owner from before the erasure. Returns
 * whether it removed any.
 */
async function removeErased(store: RecordStore, tenant: string, records: readonly MemoryRecord[]): Promise<boolean> {
  // Usually nothing was erased since these records were made. One count shows that, without a look-up for each record.
  const createdSince = Math.min(...records.map(({ createdAt }) => createdAt));
  if (records.length === 0 || (await store.count({ tenant }, 'semantic', { kinds: ['erasure'], createdSince })) === 0) return false;
  const oldest = erasablesOf(records);
  const marks = await store.load({ tenant, agent: null }, 'semantic', 'erasure', [...oldest.keys()]);
  const erased = marks.filter(({ key, createdAt }) => oldest.get(key)!.at < createdAt);
  for (const { key, createdAt } of erased) await removeOwned(store, oldest.get(key)!.owners, { createdBefore: createdAt });
  return erased.length > 0;
}
