import { rolloutIdOf } from '@etude/contracts/ids';
import {
  ConsolidationRunJob,
  MemoryUpkeepJob,
  MemoryWriteJob,
  QUEUES,
  RolloutRun,
  SandboxExecute,
  skillJobPrefix,
  skillJobSuffix,
  SkillRequest,
  SkillVerify,
} from '@etude/contracts/queues';
import { isFinal, type TaskSpec, type TaskState } from '@etude/contracts/task';
import type { Job, Queue } from 'bullmq';
import { keptSchedules } from '../jobs/scheduler.js';
import { memberOf, taskKeys } from '../redis/keys.js';
import { runScript } from '../redis/redis.js';
import { type Erased, type ErasurePlace, isOwned, keysStartingWith, trace } from './erasure-place.js';

/** Jobs that wait, run, have ended or are dead. What a job is about is looked up: it goes where that is gone, whoever removed it. */
export const JOBS: ErasurePlace = {
  name: 'queue.jobs',
  async *traces(erased) {
    const { redis, keys } = erased.producer;
    for (const { name } of QUEUES) {
      const start = `${keys.queues}:${name}:`;
      for await (const page of keysStartingWith(redis, start, 'hash')) {
        const jobs = await Promise.all(page.map((key) => ownJob(erased, name, key.slice(start.length))));
        yield jobs.filter((job) => job !== null).map((job) => trace(() => removeJob(erased.producer.queue(name), job)));
      }
    }
  },
};

/** Schedules belong to the tenant alone. */
export const SCHEDULES: ErasurePlace = {
  name: 'queue.schedules',
  async *traces({ producer, tenant, subject }) {
    if (!('all' in subject)) return;
    const all = await keptSchedules(producer);
    yield all.filter((one) => one.tenant === tenant).map((one) => trace(() => one.remove()));
  },
};

/** What the queues have told about jobs that are gone: ids, results, reasons. Nobody waits for those. */
export const QUEUE_EVENTS: ErasurePlace = {
  name: 'queue.events',
  async *traces({ producer, tenant, subject }) {
    const { redis } = producer;
    for (const { name } of QUEUES) {
      const queue = producer.queue(name);
      const stream = queue.toKey('events');
      for (let after = '-'; ;) {
        const entries = await redis.xrange(stream, after, '+', 'COUNT', PAGE);
        const gone = await Promise.all(entries.map(([, fields]) => isOfGoneJob(producer.redis, queue, jobIdOf(fields))));
        const isNamed = (fields: readonly string[]) => name === SkillVerify.name && isNamedIn(jobIdOf(fields), { tenant, subject });
        yield entries.filter((_, i) => gone[i]).map(([id, fields]) => trace(() => redis.xdel(stream, id), isNamed(fields)));
        const last = entries.at(-1);
        if (last === undefined || entries.length < PAGE) break;
        after = `(${last[0]}`;
      }
    }
  },
};

const PAGE = 500;

/** Whether the id of a verification names them. */
function isNamedIn(jobId: string, { tenant, subject }: Pick<Erased, 'tenant' | 'subject'>): boolean {
  if ('user' in subject) return jobId.startsWith(skillJobPrefix(tenant)) && jobId.endsWith(skillJobSuffix(subject.user));
  return jobId.startsWith('agent' in subject ? skillJobPrefix(tenant, subject.agent) : skillJobPrefix(tenant));
}

/** null where it stays. */
async function ownJob(erased: Erased, queueName: string, id: string): Promise<Job | null> {
  const job = (await erased.producer.queue(queueName).getJob(id)) as Job | undefined;
  const data = (job?.data ?? {}) as { tenant?: unknown };
  if (job === undefined || data.tenant !== erased.tenant || isNew(job, queueName, erased.at)) return null;
  return (await isOwnJob(erased, queueName, data)) ? job : null;
}

/** One whose record goes when it is done may be somebody else's, where it ended after the mark. Of others it is told by what they name. */
function isNew({ finishedOn, timestamp }: Job, queueName: string, at: number): boolean {
  const isKnownByRecord = queueName === MemoryWriteJob.name || queueName === SandboxExecute.name;
  return ((isKnownByRecord ? finishedOn : undefined) ?? timestamp) >= at;
}

async function isOwnJob(erased: Erased, queueName: string, data: unknown): Promise<boolean> {
  const { producer, tenant, subject, taskIds, skillIsGone } = erased;
  const { redis, keys } = producer;
  const isAll = 'all' in subject;
  const payload = QUEUES.find(({ name }) => name === queueName)?.payload.safeParse(data);
  if (payload?.success !== true) return isAll;
  switch (queueName) {
    case RolloutRun.name: {
      const { taskId } = RolloutRun.payload.parse(data);
      return taskIds.has(taskId) || (await redis.exists(keys.task(tenant, taskId))) === 0;
    }
    case SandboxExecute.name: {
      const { executionId, taskId } = SandboxExecute.payload.parse(data);
      return (taskId !== null && taskIds.has(taskId)) || (await redis.exists(keys.execution(tenant, executionId))) === 0;
    }
    case MemoryWriteJob.name:
      return (await redis.hexists(keys.memoryOutbox(tenant), MemoryWriteJob.payload.parse(data).writeId)) === 0;
    case ConsolidationRunJob.name:
      return isAll || ('agent' in subject && ConsolidationRunJob.payload.parse(data).agent === subject.agent);
    case SkillVerify.name: {
      const skill = SkillVerify.payload.parse(data);
      if ('user' in subject && skill.user === subject.user) return true;
      return isAll || ('agent' in subject && skill.agent === subject.agent) || skillIsGone(skill);
    }
    case SkillRequest.name:
      return isAll || (await redis.exists(keys.wantedSkill(tenant, SkillRequest.payload.parse(data).id))) === 0;
    default:
      // What erases them is at work.
      return isAll && MemoryUpkeepJob.payload.parse(data).work !== 'erase';
  }
}

/** False while it runs. */
async function removeJob(queue: Queue, job: Job): Promise<boolean> {
  try {
    await job.remove();
    return true;
  } catch (error) {
    // BullMQ has no code for "locked" or "of a schedule": what is left of it tells.
    if ((await queue.getJob(job.id ?? '')) === undefined) return true;
    if (/lock|scheduler/i.test((error as Error).message)) return false;
    throw error;
  }
}

function jobIdOf(fields: readonly string[]): string {
  return fields[fields.indexOf('jobId') + 1] ?? '';
}

async function isOfGoneJob(redis: Erased['producer']['redis'], queue: Queue, jobId: string): Promise<boolean> {
  return jobId !== '' && (await redis.exists(queue.toKey(jobId))) === 0;
}

type Owner = Pick<Erased, 'producer' | 'tenant' | 'subject' | 'at'>;

export interface OwnedTask {
  readonly id: string;
  readonly isFinal: boolean;
}

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
