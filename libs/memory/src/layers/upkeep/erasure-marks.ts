import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import type { Scope } from '@etude/contracts/memory';
import type { Owners, RecordStore } from '../../record-store.js';
import { untilTaken } from '../collisions.js';
import { markKey, markRecord, marksOf } from './owner-marks.js';

/** An owner who was erased, and up to when. */
export interface Forbidden {
  readonly owners: Owners;
  /** ms since 1970, exclusive */
  readonly at: number;
}

/** Writes of these owners that were made before `at` are refused from now on. Durable when it returns; an earlier `at` changes nothing. */
export async function forbid(store: RecordStore, owners: Owners, at: number): Promise<void> {
  await untilTaken('the mark of an erasure', async () => {
    const known = await loadMark(store, owners);
    if (known !== undefined && known.createdAt >= at) return true;
    const record = markRecord(owners, at);
    const [done] = await store.write(owners.tenant, [
      known === undefined ? { do: 'insert', record, indexed: [] } : { do: 'update', record, revision: known.revision },
    ]);
    return done === true ? true : null;
  });
}

/** Up to when these very owners were erased; null where they never were. */
export async function forbiddenAt(store: RecordStore, owners: Owners): Promise<number | null> {
  return (await loadMark(store, owners))?.createdAt ?? null;
}

/** Who of these was erased after the record was made. Reads the store anew each time: see `GuardedStore` for why. */
export async function findForbidden(
  store: RecordStore,
  tenant: string,
  made: ReadonlyArray<{ readonly scope: Scope; readonly createdAt: number }>,
): Promise<readonly Forbidden[]> {
  if (made.length === 0) return [];
  const oldest = new Map<string, { owners: Owners; createdAt: number }>();
  for (const { scope, createdAt } of made)
    for (const { key, owners } of marksOf(scope)) {
      const known = oldest.get(key);
      if (known === undefined || known.createdAt > createdAt) oldest.set(key, { owners, createdAt });
    }
  const marks = await store.load({ tenant, agent: null }, 'semantic', 'erasure', [...oldest.keys()]);
  return marks.flatMap(({ key, createdAt: at }) => {
    const asked = oldest.get(key);
    return asked !== undefined && asked.createdAt < at ? [{ owners: asked.owners, at }] : [];
  });
}

const ERASED = 'erased';

export function erasedError(): EtudeError {
  return new EtudeError(
    'ABORTED',
    'the agent, user or tenant of this record was erased after the record was made; nothing of it is kept, make it anew if it shall be',
    { metadata: { reason: ERASED } },
  );
}

/** Whether a write was refused because its owner was erased: then it is done with, and is not tried again. */
export function isErased(error: unknown): boolean {
  return errorCode(error) === 'ABORTED' && errorDetails(error).metadata?.reason === ERASED;
}

async function loadMark(store: RecordStore, owners: Owners) {
  const [known] = await store.load({ tenant: owners.tenant, agent: null }, 'semantic', 'erasure', [markKey(owners)]);
  return known;
}
