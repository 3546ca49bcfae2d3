import type { WantedSkill } from '@etude/contracts/skill-proof';
import { WantedSkills } from '../agents/wanted-skills.js';
import { memberOf } from '../redis/keys.js';
import { SandboxSessionStore } from '../sandboxes/sandbox-sessions.js';
import { type Erased, type ErasurePlace, isOwned, isOwnKey, keysStartingWith, trace } from './erasure-place.js';

/** Todos, loaded functions and the sandbox. What is in a session that began before is of the erased, whenever it was added. */
export const TOOL_SESSIONS: ErasurePlace = {
  name: 'queue.tool-sessions',
  async *traces(erased) {
    const { redis, keys } = erased.producer;
    const start = keys.toolSession(erased.tenant, '', '', '').slice(0, -2);
    for await (const page of keysStartingWith(redis, start)) {
      const begun = await Promise.all(page.map((key) => redis.hget(key, 'createdAt')));
      const own = page.filter((key, i) => isOwnKey(erased, key.slice(start.length)) && Number(begun[i]) < erased.at);
      yield own.map((key) => trace(() => eraseToolSession(erased, key)));
    }
  },
};

/** A sandbox that was claimed is found by its request where it was not recorded yet. What is recorded in between goes with the sandboxes. */
async function eraseToolSession(erased: Erased, key: string): Promise<void> {
  const { producer, tenant } = erased;
  const { redis, keys } = producer;
  const [sandbox, requestId] = await redis.hmget(key, 'sandbox', 'sandboxRequest');
  const made = requestId ? await redis.get(keys.request(tenant, 'sandbox', requestId)) : null;
  const claimed = made?.split(' ')[1];
  for (const id of new Set([sandbox, claimed])) if (id) await eraseSession(erased, id, 'what its session held was erased');
  await redis.del(key);
}

/** What calls answered, and that the agent called at all. Kept for an hour, and nobody's but the caller's. */
export const TOOL_ANSWERS: ErasurePlace = {
  name: 'queue.tool-answers',
  async *traces(erased) {
    const { producer, tenant, subject, at } = erased;
    const { redis, keys } = producer;
    const start = keys.toolAnswer(tenant, '', '', '').slice(0, -2);
    for await (const page of keysStartingWith(redis, start)) {
      const own = page.filter((key) => isOwnKey(erased, key.slice(start.length)));
      const texts = own.length === 0 ? [] : await redis.mget(...own);
      const old = own.filter((_, i) => isOlder(texts[i] ?? null, at));
      yield old.map((key) => trace(() => redis.del(key)));
    }
    const seen = keys.agentsSeen(tenant);
    const agents = 'agent' in subject ? [subject.agent] : 'all' in subject ? await redis.zrangebyscore(seen, '-inf', '+inf') : [];
    const times = await Promise.all(agents.map((agent) => redis.zscore(seen, agent)));
    yield agents.filter((_, i) => times[i] !== null && Number(times[i]) < at).map((agent) => trace(() => redis.zrem(seen, agent)));
  },
};

/** Wishes with what was written for them. */
export const WANTED_SKILLS: ErasurePlace = {
  name: 'queue.wanted-skills',
  async *traces(erased) {
    const { producer, tenant, at } = erased;
    const { redis, keys } = producer;
    const store = new WantedSkills(producer);
    const start = keys.wantedSkill(tenant, '');
    for await (const page of keysStartingWith(redis, start)) {
      const wishes = await Promise.all(page.map((key) => store.get(tenant, key.slice(start.length))));
      const own = wishes.filter((wish) => wish !== null && wish.createdAt < at && isOwned(erased, wish.agent, wish.user));
      yield own.flatMap((wish) => (wish === null ? [] : [trace(() => eraseWish(erased, wish))]));
    }
  },
};

async function eraseWish({ producer: { redis, keys }, tenant }: Erased, { id, agent }: WantedSkill): Promise<void> {
  await redis
    .multi()
    .del(keys.wantedSkill(tenant, id))
    .zrem(keys.wantedSkills(tenant), id)
    .zrem(keys.wantedSkillOutbox, memberOf(tenant, id))
    .srem(keys.openWishes(tenant, agent), id)
    .exec();
}

function isOlder(text: string | null, at: number): boolean {
  const answeredAt = (JSON.parse(text ?? '{}') as { at?: unknown }).at;
  return typeof answeredAt !== 'number' || answeredAt < at;
}

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
