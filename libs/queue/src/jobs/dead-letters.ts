import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { type QueueDeclaration, QUEUES, RolloutLearn, RolloutRun, SkillRequest } from '@etude/contracts/queues';
import type { Job, Queue } from 'bullmq';
import { deathOf, parseOr, readFailure } from './job-end.js';
import type { Producer } from './producer.js';
import type { Page, PageAsk } from '../redis/pages.js';
import { whileRedisAnswers } from '../redis/redis.js';

export interface QueueCounts {
  readonly name: string;
  /** Includes jobs with a priority. */
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  /** Delayed jobs whose time has come. Without a worker they stay delayed. */
  readonly due: number;
  readonly dead: number;
  readonly workers: number;
  /** Age of the job that has waited longest; 0 if none waits. */
  readonly oldestWaitingMs: number;
}

export interface DeadLetter {
  readonly queue: string;
  readonly id: string;
  readonly code: ErrorCode;
  readonly reason: string;
  /** Path of the wrong field in the payload; empty if the payload is not the reason. */
  readonly path: string;
  readonly payload: unknown;
  readonly attempts: number;
  /** ms since 1970. */
  readonly failedAt: number;
}

export interface Redriven {
  readonly redriven: number;
  /** One line per dead letter that stays dead, with the reason. */
  readonly refused: readonly string[];
}

/** The dead letters of every queue, which are BullMQ's failed jobs. @throws EtudeError NOT_FOUND, QUEUE_UNAVAILABLE */
export class DeadLetters {
  constructor(
    private readonly producer: Producer,
    /** Sets a task to `queued` before its rollout's job is redriven. Answers `queued`, `gone`, or the state that forbids it. */
    private readonly tasks: {
      requeue(tenant: string, taskId: string): Promise<string>;
      /** Reopens the learning of an ended task. Answers `pending`, `gone`, or the state that forbids it. */
      reopenLearning(tenant: string, taskId: string): Promise<string>;
    },
    /** Reopens a wish for a skill before its `skill.request` is redriven. Answers `waiting`, `gone`, or the state that forbids it. */
    private readonly wishes?: { reopen(tenant: string, id: string): Promise<string> },
  ) {}

  async queues(): Promise<QueueCounts[]> {
    return this.#bounded(Promise.all(QUEUES.map(({ name }) => countsOf(this.producer, this.producer.queue(name)))));
  }

  /** Newest first. */
  async list(queueName: string, { pageSize, after = '0' }: PageAsk): Promise<Page<DeadLetter>> {
    const queue = this.producer.queue(declarationOf(queueName).name);
    const start = Number(after);
    const jobs = (await this.#bounded(queue.getFailed(start, start + pageSize))) as Job[];
    return {
      items: jobs.slice(0, pageSize).map((job) => letterOf(queue.name, job)),
      nextAfter: jobs.length > pageSize ? String(start + pageSize) : null,
    };
  }

  /** Returns dead letters to their queue and counts their attempts from 0. The task of a rollout gets the state `queued` again. */
  async redrive(queueName: string, which: { readonly ids: readonly string[] } | { readonly all: true }): Promise<Redriven> {
    const declaration = declarationOf(queueName);
    const queue = this.producer.queue(declaration.name);
    const ids = 'all' in which ? await this.#bounded(this.producer.redis.zrange(queue.toKey('failed'), '0', '-1')) : which.ids;
    const refused: string[] = [];
    for (const id of ids) {
      const reason = await this.#redriveOne(declaration, queue, id);
      if (reason) refused.push(`${id}: ${reason}`);
    }
    return { redriven: ids.length - refused.length, refused };
  }

  async #redriveOne(declaration: QueueDeclaration, queue: Queue, id: string): Promise<string | null> {
    const job = (await this.#bounded(queue.getJob(id))) as Job | undefined;
    if (!job) return 'there is no such job';
    if (!deathOf(job)) return 'the job is not a dead letter';
    try {
      parseOr(declaration.payload, job.data, 'JOB_PAYLOAD_INVALID', 'its payload still');
    } catch (error) {
      return (error as Error).message;
    }
    const why = await this.#reopenRecord(declaration.name, job.data);
    if (why) return why;
    await this.#bounded(reviveJob(this.producer, queue, job));
    return null;
  }

  /** Reopens the record of a job, because a job whose record has ended does nothing. @returns why the record can't be reopened, or null */
  async #reopenRecord(queue: string, data: unknown): Promise<string | null> {
    if (queue === RolloutRun.name) {
      const { tenant, taskId } = RolloutRun.payload.parse(data);
      return obstacle(`task ${taskId}`, await this.tasks.requeue(tenant, taskId), ['queued']);
    }
    if (queue === RolloutLearn.name) {
      const { tenant, taskId } = RolloutLearn.payload.parse(data);
      return obstacle(`learning from task ${taskId}`, await this.tasks.reopenLearning(tenant, taskId), ['pending']);
    }
    if (queue !== SkillRequest.name || this.wishes === undefined) return null;
    const { tenant, id } = SkillRequest.payload.parse(data);
    return obstacle(`wantedSkills/${id}`, await this.wishes.reopen(tenant, id), ['waiting', 'writing']);
  }

  #bounded<T>(work: Promise<T>): Promise<T> {
    return whileRedisAnswers(this.producer.redis, work);
  }
}

/** Returns a dead job to its queue and counts its attempts and lost workers from 0. */
export async function reviveJob({ redis }: Producer, queue: Queue, job: Job): Promise<void> {
  await redis.hdel(queue.toKey(job.id ?? ''), 'stc');
  await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true });
}

function obstacle(what: string, state: string, open: readonly string[]): string | null {
  if (open.includes(state)) return null;
  return state === 'gone' ? `${what} is no longer kept` : `${what} is already ${state}`;
}

function declarationOf(name: string): QueueDeclaration {
  const declaration = QUEUES.find((queue) => queue.name === name);
  if (!declaration)
    throw new EtudeError('NOT_FOUND', `there is no queue "${name}"; the queues are ${QUEUES.map((queue) => queue.name).join(', ')}`, {
      field: 'queue',
    });
  return declaration;
}

async function countsOf(producer: Producer, queue: Queue): Promise<QueueCounts> {
  const [counts, due, workers, oldest] = await Promise.all([
    queue.getJobCounts('wait', 'prioritized', 'active', 'delayed', 'failed'),
    producer.redis.zcount(queue.toKey('delayed'), 0, (Date.now() + 1) * DELAY_STEP - 1),
    queue.getWorkersCount(),
    oldestWaitingMs(producer, queue),
  ]);
  const { wait = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
  return { name: queue.name, waiting: wait + prioritized, active, delayed, due, dead: failed, workers, oldestWaitingMs: oldest };
}

/** BullMQ's score of a delayed job is its due time in ms times this number, plus a counter. */
const DELAY_STEP = 0x1000;
/**
 * Age of the job that has waited longest, with or without a priority; 0 if none waits. Only rollouts have several priorities, so for them
 * `waitingSince` is read too. A rollout that its worker gave back isn't listed there, but it is the first in `prioritized`.
 */
export async function oldestWaitingMs({ redis, keys }: Producer, queue: Queue, nowMs = Date.now()): Promise<number> {
  const ids = [redis.lrange(queue.toKey('wait'), -1, -1), redis.zrange(queue.toKey('prioritized'), '0', '0')];
  if (queue.name === RolloutRun.name) ids.push(redis.zrange(keys.waitingSince, '0', '0'));
  const jobs = (await Promise.all((await Promise.all(ids)).flat().map((id) => queue.getJob(id)))) as Array<Job | undefined>;
  const oldest = Math.min(nowMs, ...jobs.filter((job) => job !== undefined).map(({ timestamp }) => timestamp));
  return nowMs - oldest;
}

function letterOf(queue: string, job: Job): DeadLetter {
  const failure = readFailure(job.failedReason);
  return {
    queue,
    id: job.id ?? '',
    code: failure.code,
    reason: failure.message,
    path: failure.path ?? '',
    payload: job.data as unknown,
    attempts: job.attemptsMade,
    failedAt: job.finishedOn ?? 0,
  };
}
