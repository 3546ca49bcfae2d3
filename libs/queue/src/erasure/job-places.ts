import { rolloutIdOf } from '@etude/contracts/ids';
import {
  ConsolidationRunJob,
  MemorySettleJob,
  MemoryUpkeepJob,
  MemoryWriteJob,
  QUEUES,
  RolloutLearn,
  RolloutRun,
  SandboxExecute,
  SkillRequest,
  SkillVerify,
} from '@etude/contracts/queues';
import { isFinal, type TaskState } from '@etude/contracts/task';
import { isRecalledFrom, type RecordOfTenant, taskOfRecord } from '@etude/domain/recall/deleted-record';
import type { Job, Queue } from 'bullmq';
import { keptSchedules } from '../jobs/scheduler.js';
import { memberOf, taskKeys } from '../redis/keys.js';
import { runScript } from '../redis/redis.js';
import { type Erased, type ErasurePlace, isOwned, keyedPlace, namedRecordOf, type Trace } from './erasure-place.js';
import { RecalledItem, Scope } from '@etude/contracts/memory';
import { z } from 'zod';

/** Jobs in every state. A job whose record is gone is removed too. */
export const JOBS: readonly ErasurePlace[] = QUEUES.map(({ name }) =>
  keyedPlace({
    name: 'queue.jobs',
    type: 'hash',
    start: ({ producer }) => `${producer.keys.queues}:${name}:`,
    async trace(erased, _key, id) {
      const queue = erased.producer.queue(name);
      const job = (await queue.getJob(id)) as Job | undefined;
      const data = (job?.data ?? {}) as { tenant?: unknown };
      if (job === undefined || data.tenant !== erased.tenant || isNew(job, erased.at)) return null;
      return (await isOwnJob(erased, name, data)) ? () => removeJob(queue, job) : null;
    },
  }),
);

/** Schedules. They belong to the tenant, not to an agent or user. */
export const SCHEDULES: ErasurePlace = {
  name: 'queue.schedules',
  async *traces({ producer, tenant, subject }) {
    if (!('all' in subject)) return;
    const all = await keptSchedules(producer);
    yield all.filter((one) => one.tenant === tenant).map((one) => () => one.remove());
  },
};

/**
 * Whether a job is newer than the erasure. If the record of a memory write or an execution is missing, its job counts as the subject's. But
 * the record is also missing after a normal end. So such a job is dated by its end, and jobs of other owners that ended later stay.
 */
function isNew({ finishedOn, timestamp, queueName }: Job, at: number): boolean {
  const isKnownByRecord = queueName === MemoryWriteJob.name || queueName === SandboxExecute.name;
  return ((isKnownByRecord ? finishedOn : undefined) ?? timestamp) >= at;
}

async function isOwnJob(erased: Erased, queueName: string, data: unknown): Promise<boolean> {
  const { producer, tenant, subject, taskIds, skillIsGone } = erased;
  const { redis, keys } = producer;
  const isAll = 'all' in subject;
  const isGone = async (key: string) => (await redis.exists(key)) === 0;
  const payload = QUEUES.find(({ name }) => name === queueName)?.payload.safeParse(data);
  if (payload?.success !== true) return isAll;
  switch (queueName) {
    case RolloutLearn.name:
    case RolloutRun.name: {
      const { taskId } = RolloutRun.payload.parse(data);
      return taskIds.has(taskId) || isGone(keys.task(tenant, taskId));
    }
    case SandboxExecute.name: {
      const { executionId, taskId } = SandboxExecute.payload.parse(data);
      return (taskId !== null && taskIds.has(taskId)) || isGone(keys.execution(tenant, executionId));
    }
    case MemoryWriteJob.name:
      return (await redis.hexists(keys.memoryOutbox(tenant), MemoryWriteJob.payload.parse(data).writeId)) === 0;
    case ConsolidationRunJob.name:
      return isAll || ('agent' in subject && ConsolidationRunJob.payload.parse(data).agent === subject.agent);
    case SkillVerify.name: {
      const skill = SkillVerify.payload.parse(data);
      return isOwned(erased, skill.agent, skill.user ?? null) || skillIsGone(skill);
    }
    case SkillRequest.name:
      return isAll || isGone(keys.wantedSkill(tenant, SkillRequest.payload.parse(data).id));
    case MemorySettleJob.name:
      return isAll;
    default:
      // Jobs of erasures are left out, because the erasure itself is such a job and is running.
      return isAll && MemoryUpkeepJob.payload.parse(data).work !== 'erase';
  }
}

/** Resolves to false while the job runs, or while it belongs to a schedule. */
async function removeJob(queue: Queue, job: Job): Promise<boolean> {
  try {
    await job.remove();
    return true;
  } catch (error) {
    // BullMQ has no error code for a job that is locked or belongs to a schedule, only a message.
    if ((await queue.getJob(job.id ?? '')) === undefined) return true;
    if (/lock|scheduler/i.test((error as Error).message)) return false;
    throw error;
  }
}

export type Owner = Pick<Erased, 'producer' | 'tenant' | 'subject' | 'at'>;

export interface OwnedTask {
  readonly id: string;
  /** Whether no worker runs the task or learns from it. */
  readonly isOver: boolean;
}

/** Tasks with their journals, event streams and request ids. */
export const TASKS: ErasurePlace = {
  name: 'queue.tasks',
  async *traces(erased) {
    for await (const tasks of ownedTasks(erased)) yield tasks.map(({ id }) => eraseTask.bind(null, erased, id));
  },
};

const PAGE = 500;

/** The subject's tasks, oldest first, a page at a time. */
export async function* ownedTasks(owner: Owner): AsyncGenerator<readonly OwnedTask[]> {
  const { subject } = owner;
  const only = 'record' in subject ? taskOfRecord(subject.record) : null;
  for await (const ids of 'record' in subject ? [only === null ? [] : [only]] : taskPages(owner)) {
    const found = await Promise.all(ids.map((id) => readOwned(owner, id)));
    yield found.filter((task) => task !== null);
  }
}

/** Ids of the tenant's tasks, oldest first, a page at a time. */
async function* taskPages({ producer: { redis, keys }, tenant }: Owner): AsyncGenerator<readonly string[]> {
  for (let after = '-'; ;) {
    const ids = await redis.zrangebylex(keys.tasks(tenant), after, '+', 'LIMIT', 0, PAGE);
    yield ids;
    if (ids.length < PAGE) return;
    after = `(${ids.at(-1)}`;
  }
}

const isTaskOver = (state: string | null | undefined, learning: string | null | undefined): boolean =>
  isFinal(state as TaskState) && learning !== 'pending';

async function readOwned(owner: Owner, id: string): Promise<OwnedTask | null> {
  const { redis, keys } = owner.producer;
  const fields = ['createdAt', 'agent', 'user', 'state', 'learning'];
  const [createdAt, agent, user, state, learning] = await redis.hmget(keys.task(owner.tenant, id), ...fields);
  if (!state || Number(createdAt) >= owner.at) return null;
  return 'record' in owner.subject || isOwned(owner, agent ?? '', user || null) ? { id, isOver: isTaskOver(state, learning) } : null;
}

async function eraseTask({ producer: { redis, keys }, tenant }: Owner, taskId: string): Promise<void> {
  const rolloutId = rolloutIdOf(taskId);
  const args = [memberOf(tenant, rolloutId), keys.wake(tenant, taskId), taskId];
  await runScript(redis, 'eraseTask', taskKeys(keys, { tenant, taskId, rolloutId }), args);
}

/**
 * Copies of a record in the journals and events of tasks that recalled it, or whose tools returned it. They are removed once the task and its
 * learning have ended, because a worker uses them until then. If such a task is redriven, it begins anew.
 */
export const JOURNALS: ErasurePlace = {
  name: 'queue.journals',
  async *traces(erased) {
    const record = namedRecordOf(erased);
    if (record === null) return;
    for await (const ids of taskPages(erased)) {
      const traces = await Promise.all(ids.map((id) => traceOf(erased, record, id)));
      yield traces.filter((trace) => trace !== null);
    }
  },
};

/** The JSON of a journal entry with copies of records: of a recall, a tool call, or the attempts from which learning starts. */
const Recall = z.object({
  value: z.union([
    z.array(RecalledItem),
    z.array(z.object({ recalled: z.array(RecalledItem) })).transform((attempts) => attempts.flatMap(({ recalled }) => recalled)),
    z
      .object({ outcome: z.object({ result: z.object({ records: z.array(RecalledItem) }) }) })
      .transform(({ outcome }) => outcome.result.records),
  ]),
});
const HOLDS_RECORDS = /\.(?:recall|t\d+)$|^t\.attempts$/;

async function traceOf({ tenant, at, producer: { redis, keys } }: Erased, record: RecordOfTenant, taskId: string): Promise<Trace | null> {
  const journal = keys.journal(rolloutIdOf(taskId));
  const recalls = (await redis.hkeys(journal)).filter((step) => HOLDS_RECORDS.test(step));
  if (recalls.length === 0) return null;
  const fields = ['state', 'createdAt', 'agent', 'user', 'learning'];
  const [state, createdAt, agent, user, learning] = await redis.hmget(keys.task(tenant, taskId), ...fields);
  const scope = Scope.safeParse({ tenant, agent, user: user || null }).data;
  if (scope === undefined || Number(createdAt) >= at) return null;
  const entries = (await redis.hmget(journal, ...recalls)).map((text) => Recall.safeParse(JSON.parse((text ?? '').replace(/^\d+ /, ''))));
  if (!entries.some(({ data }) => data?.value.some((item) => isRecalledFrom(record, scope, item)))) return null;
  return async () => isTaskOver(state, learning) && runScript(redis, 'removeRecalls', [journal, keys.events(tenant, taskId)], []);
}
