import { MemoryUpkeepJob, MemoryWriteJob, RolloutRun, SkillRequest } from '@etude/contracts/queues';
import type { Job, Queue } from 'bullmq';
import { retryJob, reviveJob } from './dead-letters.js';
import { readFailure } from './job-failure.js';
import type { Producer } from './producer.js';
import { isConnectionError, type QueueLogger } from '../redis/redis.js';
import { parseMember, rolloutOfMember } from '../redis/keys.js';
import type { TaskStore } from '../tasks/task-store.js';
import { UpkeepStore } from '../memory/upkeep-store.js';
import { WantedSkills } from '../agents/wanted-skills.js';

export interface ReconcilerOptions {
  readonly producer: Producer;
  readonly tasks: TaskStore;
  readonly intervalMs: number;
  readonly logger?: QueueLogger;
}

export interface Reconciler {
  /** One pass. @returns how many gaps it closed */
  runOnce(): Promise<number>;
  close(): Promise<void>;
}

/** Younger entries are still on their ordinary way. */
const ROLLOUT_AGE_MS = 2_000;
const MEMORY_AGE_MS = 5_000;
/** A write whose job is dead waits for an operator; it is looked at again to see a redrive through. */
const DEAD_AGAIN_MS = 60_000;
/** Times that the job of an erasure is made to wait again before it is given up. */
const REVIVED_MAX = 3;
const BATCH = 500;
/** Workers stamp a death with their own clocks. */
const CLOCK_MARGIN_MS = 10_000;

/**
 * Closes the gaps that a crash between two writes leaves: accepted tasks, memory writes and wishes without a
 * job, tasks and wishes whose job is dead.
 * Any number of processes may run one; a pass over nothing costs three reads.
 */
export function startReconciler({ producer, tasks, intervalMs, logger }: ReconcilerOptions): Reconciler {
  let deadSince = 0;
  let pass: Promise<number> | null = null;
  const runOnce = async () => {
    const now = await redisNow(producer);
    const rollouts = await reconcileRollouts(producer, tasks, now);
    const writes = await reconcileWrites(producer, now);
    const upkeep = await reconcileUpkeep(producer, now);
    const wishes = await reconcileWishes(producer, now);
    const dead = await failDeadRollouts(producer, tasks, deadSince);
    deadSince = now - CLOCK_MARGIN_MS;
    const closed = rollouts + writes + upkeep + wishes + dead;
    if (closed > 0) logger?.info({ rollouts, writes, upkeep, wishes, dead }, 'closed gaps between records and jobs');
    return closed;
  };
  const tick = async () => {
    try {
      await (pass ??= runOnce());
    } catch (error) {
      if (!isUnavailable(error)) logger?.error({ error: (error as Error).message }, 'reconciling failed; the next pass tries again');
    } finally {
      pass = null;
    }
  };
  const timer = setInterval(() => void tick(), intervalMs);
  void tick();
  return {
    runOnce,
    async close() {
      clearInterval(timer);
      await pass?.catch(() => 0);
    },
  };
}

/** An outbox entry says that a task's job must be there. */
async function reconcileRollouts(producer: Producer, tasks: TaskStore, now: number): Promise<number> {
  const { redis, keys } = producer;
  let closed = 0;
  for (const member of await redis.zrangebyscore(keys.rolloutOutbox, '-inf', now - ROLLOUT_AGE_MS, 'LIMIT', 0, BATCH)) {
    if (await reconcileRollout(producer, tasks, member)) closed++;
    await redis.zrem(keys.rolloutOutbox, member);
  }
  return closed;
}

async function reconcileRollout(producer: Producer, tasks: TaskStore, member: string): Promise<boolean> {
  const address = rolloutOfMember(member);
  if (!address) return false;
  const { tenant, taskId, rolloutId } = address;
  const queue = producer.queue(RolloutRun.name);
  const job = (await queue.getJob(rolloutId)) as Job | undefined;
  if (job && !job.finishedOn) return false;
  if (job?.failedReason) return (await settleDead(tasks, job, tenant, taskId)) !== 'final';
  const [state, priority] = await producer.redis.hmget(producer.keys.task(tenant, taskId), 'state', 'priority');
  if (state !== 'queued' && state !== 'running') return false;
  await job?.remove();
  await producer.add(RolloutRun, { v: 1, tenant, taskId, rolloutId }, { priority: Number(priority ?? 0) });
  return true;
}

/** Ends the task, unless it was redriven since the job died: then that redrive is completed. */
async function settleDead(tasks: TaskStore, job: Job, tenant: string, taskId: string): Promise<'failed' | 'gone' | 'final' | 'requeued'> {
  const { code, message } = readFailure(job.failedReason);
  const outcome = await tasks.failUnlessRequeued(tenant, taskId, { code, message }, job.finishedOn ?? 0);
  if (outcome === 'requeued') await retryJob(job);
  return outcome;
}

async function reconcileWrites(producer: Producer, now: number): Promise<number> {
  const { redis, keys } = producer;
  const queue = producer.queue(MemoryWriteJob.name);
  let closed = 0;
  for (const member of await redis.zrangebyscore(keys.memoryOutboxIndex, '-inf', now - MEMORY_AGE_MS, 'LIMIT', 0, BATCH)) {
    const parsed = parseMember(member);
    const job = parsed && ((await queue.getJob(parsed.id)) as Job | undefined);
    const dead = Boolean(job?.finishedOn && job.failedReason);
    if (parsed && !dead && (!job || job.finishedOn)) {
      await job?.remove();
      await producer.add(MemoryWriteJob, { v: 1, tenant: parsed.tenant, writeId: parsed.id });
      closed++;
    }
    // The score says when to look again, so that old dead ones don't hide the rest.
    await redis.zadd(keys.memoryOutboxIndex, 'XX', dead ? now + DEAD_AGAIN_MS : now, member);
  }
  return closed;
}

/** Erasures and the move to another model whose record says that there is work, but that have no job that would do it. */
async function reconcileUpkeep(producer: Producer, now: number): Promise<number> {
  const { redis, keys } = producer;
  const store = new UpkeepStore(producer);
  let closed = 0;
  for (const member of await redis.zrangebyscore(keys.erasureOutbox, '-inf', now - MEMORY_AGE_MS, 'LIMIT', 0, BATCH)) {
    const parsed = parseMember(member);
    if (parsed && (await reconcileErasure(producer, store, parsed, now))) closed++;
    await redis.zadd(keys.erasureOutbox, 'XX', now, member);
  }
  const { id, state, startedAt } = await store.reembedding();
  if (state !== 'running' || startedAt > now - MEMORY_AGE_MS || (await producer.queue(MemoryUpkeepJob.name).getJob(`reembed.${id}`)))
    return closed;
  await producer.add(MemoryUpkeepJob, { v: 1, work: 'reembed', id });
  return closed + 1;
}

/** A job that died without a word, such as with its worker, is tried again a few times; then the erasure has failed for its reason. */
async function reconcileErasure(
  producer: Producer,
  store: UpkeepStore,
  { tenant, id }: { readonly tenant: string; readonly id: string },
  now: number,
): Promise<boolean> {
  const queue = producer.queue(MemoryUpkeepJob.name);
  const job = (await queue.getJob(`erase.${id}`)) as Job | undefined;
  if (job !== undefined && !job.finishedOn) return false;
  const stored = await store.loadErasure(tenant, id);
  if (stored?.receipt.state !== 'running') return false;
  if (!job?.failedReason) {
    await job?.remove();
    await producer.add(MemoryUpkeepJob, { v: 1, work: 'erase', tenant, id });
    return true;
  }
  if (stored.revived < REVIVED_MAX) {
    await store.putErasure({ ...stored, revived: stored.revived + 1 });
    await reviveJob(producer, queue, job);
    return true;
  }
  const { code, message } = readFailure(job.failedReason);
  await store.putErasure({ ...stored, receipt: { ...stored.receipt, state: 'failed', error: `${code}: ${message}`, finishedAt: now } });
  return true;
}

/** Wishes for skills that have no job that would fulfil them. One whose job is dead has failed for its reason. */
async function reconcileWishes(producer: Producer, now: number): Promise<number> {
  const { redis, keys } = producer;
  const store = new WantedSkills(producer);
  let closed = 0;
  for (const member of await redis.zrangebyscore(keys.wantedSkillOutbox, '-inf', now - MEMORY_AGE_MS, 'LIMIT', 0, BATCH)) {
    const parsed = parseMember(member);
    const isOpen = parsed !== null && (await reconcileWish(producer, store, parsed));
    if (isOpen) await redis.zadd(keys.wantedSkillOutbox, 'XX', now, member);
    else {
      await redis.zrem(keys.wantedSkillOutbox, member);
      closed++;
    }
  }
  return closed;
}

const OPEN_WISHES: ReadonlySet<string> = new Set(['waiting', 'writing']);

/** Whether there is still something to do for it. */
async function reconcileWish(
  producer: Producer,
  store: WantedSkills,
  { tenant, id }: { readonly tenant: string; readonly id: string },
): Promise<boolean> {
  const job = (await producer.queue(SkillRequest.name).getJob(SkillRequest.jobId({ v: 1, tenant, id }))) as Job | undefined;
  if (job !== undefined && !job.finishedOn) return true;
  const stored = await store.load(tenant, id);
  if (stored === null || !OPEN_WISHES.has(stored.wanted.state)) return false;
  const { wanted, round } = stored;
  if (job?.failedReason) {
    const { code, message } = readFailure(job.failedReason);
    await store.end({ tenant, id, round }, { state: 'failed', reason: `${code}: ${message}`, registered: null, scripted: wanted.scripted });
    return false;
  }
  await store.enqueue(tenant, id, wanted.priority);
  return true;
}

/** Tasks whose job died where nobody was left to say so. */
async function failDeadRollouts(producer: Producer, tasks: TaskStore, since: number): Promise<number> {
  const queue = producer.queue(RolloutRun.name);
  let closed = 0;
  for (let offset = 0; ; offset += BATCH) {
    const ids = await producer.redis.zrangebyscore(queue.toKey('failed'), since, '+inf', 'LIMIT', offset, BATCH);
    for (const id of ids) if (await failDeadRollout(queue, tasks, id)) closed++;
    if (ids.length < BATCH) return closed;
  }
}

async function failDeadRollout(queue: Queue, tasks: TaskStore, id: string): Promise<boolean> {
  const job = (await queue.getJob(id)) as Job | undefined;
  const payload = RolloutRun.payload.safeParse(job?.data);
  if (!job?.finishedOn || !job.failedReason || !payload.success) return false;
  const { code, message } = readFailure(job.failedReason);
  return tasks.markFailed(payload.data.tenant, payload.data.taskId, { code, message }, job.finishedOn);
}

async function redisNow({ redis }: Producer): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

function isUnavailable(error: unknown): boolean {
  return isConnectionError(error) || (error as { code?: unknown }).code === 'QUEUE_UNAVAILABLE';
}
