import { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import { ExecutionRequest } from '@etude/contracts/sandbox';
import { MemoryWrite } from '@etude/contracts/memory';
import { updatedAt } from '../agents/agent-settings-store.js';
import { withoutQuotes } from '../memory/consolidation-store.js';
import { taskOfExecution } from '@etude/contracts/ids';
import { OutboxReader, ownerOf } from '../memory/memory-outbox.js';
import { runScript } from '../redis/redis.js';
import { type Erased, type ErasurePlace, fieldsOf, isOwned, keysStartingWith, trace, type Trace } from './erasure-place.js';

/** Writes that memory has not taken yet; one that can't be read is nobody's but the tenant's. */
export const OUTBOX: ErasurePlace = {
  name: 'queue.outbox',
  async *traces(erased) {
    const { tenant, producer } = erased;
    const reader = new OutboxReader(producer.redis, producer.keys);
    for await (const page of fieldsOf(producer.redis, producer.keys.memoryOutbox(tenant)))
      yield page.filter(([, text]) => isOwnWrite(erased, text)).map(([id]) => trace(() => reader.remove(tenant, id)));
  },
};

/** Requests and results of executions: those of erased tasks, also where the task is gone already, and of the verification of skills. */
export const EXECUTIONS: ErasurePlace = {
  name: 'queue.executions',
  async *traces(erased) {
    const { redis, keys } = erased.producer;
    const start = keys.execution(erased.tenant, '');
    for await (const page of keysStartingWith(redis, start)) {
      const owned = await Promise.all(page.map((key) => isOwnExecution(erased, key, key.slice(start.length))));
      yield page.filter((_, i) => owned[i]).map((key) => trace(() => redis.del(key)));
    }
  },
};

/** Runs of the agent are removed; what others planned may quote anybody, and is cut out. */
export const CONSOLIDATIONS: ErasurePlace = {
  name: 'queue.consolidations',
  async *traces(erased) {
    const { redis, keys } = erased.producer;
    for await (const page of keysStartingWith(redis, keys.consolidation(erased.tenant, ''))) {
      const texts = await redis.mget(...page);
      yield page.flatMap((key, i) => consolidationTrace(erased, key, texts[i] ?? null));
    }
  },
};

/** Of what is gone: a value is a digest and the id of what was made. Of a whole tenant also those of other calls; an erasure's holds digests. */
export const REQUESTS: ErasurePlace = {
  name: 'queue.requests',
  async *traces(erased) {
    const { tenant, producer } = erased;
    const start = producer.keys.request(tenant, '', '').slice(0, -1);
    for await (const page of keysStartingWith(producer.redis, start)) {
      const gone = await Promise.all(page.map((key) => isOfNothing(erased, key, key.slice(start.length).split(':', 1)[0] ?? '')));
      yield page.filter((_, i) => gone[i]).map((key) => trace(() => producer.redis.del(key)));
    }
  },
};

/** Settings of agents. They name no user. */
export const AGENTS: ErasurePlace = {
  name: 'queue.agents',
  async *traces({ tenant, subject, at, producer: { redis, keys } }) {
    if ('user' in subject) return;
    for await (const page of fieldsOf(redis, keys.agents(tenant))) {
      const owned = page.filter(([agent, text]) => ('all' in subject || agent === subject.agent) && updatedAt(text) < at);
      yield owned.map(([agent]) => trace(() => redis.hdel(keys.agents(tenant), agent)));
    }
  },
};

function isOwnWrite(erased: Erased, text: string): boolean {
  const write = MemoryWrite.safeParse(JSON.parse(text));
  if (!write.success) return 'all' in erased.subject;
  const { scope, at } = ownerOf(write.data);
  return at < erased.at && isOwned(erased, scope.agent, scope.user);
}

async function isOwnExecution({ producer: { redis, keys }, tenant, subject, taskIds }: Erased, key: string, id: string): Promise<boolean> {
  const taskId = taskOfExecution(id);
  if (taskId !== null) return taskIds.has(taskId) || (await redis.exists(keys.task(tenant, taskId))) === 0;
  if ('all' in subject) return true;
  const [text, result] = await redis.hmget(key, 'request', 'result');
  const request = ExecutionRequest.safeParse(JSON.parse(text ?? 'null'));
  const owner = request.success ? request.data.owner : undefined;
  // Without an owner it was made by an older service: a result that is over is of no use to anybody but a repeat.
  if (owner === undefined) return id.startsWith('verify-') && result !== null;
  return isOwned({ subject }, owner.agent, owner.user);
}

function consolidationTrace({ producer: { redis }, subject, at }: Erased, key: string, text: string | null): Trace[] {
  const record = ConsolidationRecord.safeParse(JSON.parse(text ?? 'null'));
  if (!record.success) return 'all' in subject ? [trace(() => redis.del(key))] : [];
  if (text === null || record.data.createdAt >= at) return [];
  if ('all' in subject) return [trace(() => redis.del(key))];
  if ('agent' in subject && record.data.agent === subject.agent) return [trace(() => redis.del(key))];
  if ('agent' in subject && record.data.agent !== null) return [];
  const cut = withoutQuotes(record.data);
  if (cut === record.data) return [];
  return [trace(async () => (await runScript<number>(redis, 'swapRecord', [key], [text, JSON.stringify(cut)])) === 1)];
}

async function isOfNothing({ producer: { redis, keys }, tenant, subject }: Erased, key: string, method: string): Promise<boolean> {
  const [, id = ''] = ((await redis.get(key)) ?? '').split(' ');
  switch (method) {
    case 'submit':
      return (await redis.exists(keys.task(tenant, id))) === 0;
    case 'consolidate':
      return (await redis.exists(keys.consolidation(tenant, id))) === 0;
    case 'sandbox':
      return (await redis.exists(keys.sandbox(tenant, id))) === 0;
    case 'wish':
      return (await redis.exists(keys.wantedSkill(tenant, id))) === 0;
    case 'erase':
      return false;
    default:
      return 'all' in subject;
  }
}
