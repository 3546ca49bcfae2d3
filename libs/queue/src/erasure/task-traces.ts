import { rolloutIdOf } from '@etude/contracts/ids';
import { isFinal, type TaskSpec, type TaskState } from '@etude/contracts/task';
import { runScript } from '../redis/redis.js';
import { memberOf, taskKeys } from '../redis/keys.js';
import { type Erased, type ErasurePlace, isOwned, trace } from './erasure-place.js';

type Owner = Pick<Erased, 'producer' | 'tenant' | 'subject' | 'at'>;

export interface OwnedTask {
  readonly id: string;
  readonly isFinal: boolean;
}

const PAGE = 200;

/** Tasks with their journals, event streams and request ids. */
export const TASKS: ErasurePlace = {
  name: 'queue.tasks',
  async *traces(erased) {
    for await (const tasks of ownedTasks(erased)) yield tasks.map(({ id }) => trace(() => eraseTask(erased, id)));
  },
};

/** Oldest first; ids of tasks are ordered by time. */
export async function* ownedTasks(owner: Owner): AsyncGenerator<readonly OwnedTask[]> {
  const { redis, keys } = owner.producer;
  for (let after = '-'; ;) {
    const ids = await redis.zrangebylex(keys.tasks(owner.tenant), after, '+', 'LIMIT', 0, PAGE);
    const found = await Promise.all(ids.map((id) => readOwned(owner, id)));
    yield found.filter((task) => task !== null);
    const last = ids.at(-1);
    if (last === undefined || ids.length < PAGE) return;
    after = `(${last}`;
  }
}

async function readOwned(owner: Owner, id: string): Promise<OwnedTask | null> {
  const { redis, keys } = owner.producer;
  const key = keys.task(owner.tenant, id);
  const [state, createdAt, agent, user] = await redis.hmget(key, 'state', 'createdAt', 'agent', 'user');
  if (!state || Number(createdAt) >= owner.at) return null;
  const spec = agent ? { agent, user } : (JSON.parse((await redis.hget(key, 'spec')) ?? '{}') as Partial<TaskSpec>);
  return isOwned(owner, spec.agent ?? '', spec.user || null) ? { id, isFinal: isFinal(state as TaskState) } : null;
}

async function eraseTask({ producer: { redis, keys }, tenant }: Owner, taskId: string): Promise<void> {
  const rolloutId = rolloutIdOf(taskId);
  const args = [memberOf(tenant, rolloutId), keys.wake(tenant, taskId), taskId];
  await runScript(redis, 'eraseTask', taskKeys(keys, { tenant, taskId, rolloutId }), args);
}
