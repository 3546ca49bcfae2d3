import { SandboxSessionStore } from '../sandboxes/sandbox-sessions.js';
import { type Erased, type ErasurePlace, isOwnKey, trace } from './erasure-place.js';
import { keysStartingWith } from './keyspace.js';

/**
 * Sessions belong to the tenant alone, but for those that a session of tools opened or named, which are of its agent and user since
 * then. An open one is closed first; its controller finds it gone, and removes the sandbox.
 */
export const SESSIONS: ErasurePlace = {
  name: 'queue.sandboxes',
  async *traces(erased) {
    const { redis, keys } = erased.producer;
    const isAll = 'all' in erased.subject;
    const reason = isAll ? 'its tenant was erased' : 'what sessions of tools left in it was erased';
    const start = keys.sandbox(erased.tenant, '');
    for await (const page of keysStartingWith(redis, start)) {
      const found = await Promise.all(page.map((key) => redis.hmget(key, 'createdAt', 'toolOwner', 'toolSince')));
      const own = page.filter((_, i) => {
        const [createdAt, owner, since] = found[i] ?? [];
        return isAll ? Number(createdAt) < erased.at : Boolean(owner) && isOwnKey(erased, owner ?? '') && Number(since) < erased.at;
      });
      yield own.map((key) => trace(() => eraseSession(erased, key.slice(start.length), reason)));
    }
  },
};

/** Ends it, where it is open, and forgets it. */
export async function eraseSession({ producer: { redis, keys }, tenant }: Erased, id: string, reason: string): Promise<void> {
  const store = new SandboxSessionStore(redis, keys);
  const key = keys.sandbox(tenant, id);
  const [state, epoch, requestKey] = await redis.hmget(key, 'state', 'ownerEpoch', 'requestKey');
  if (state === 'open') await store.end(tenant, id, Number(epoch), 'closed', reason);
  await redis.del(key, ...(requestKey ? [requestKey] : []));
  await redis.zrem(keys.sandboxes(tenant), id);
}
