import { setTimeout as sleep } from 'node:timers/promises';
import { errorCode, EtudeError, isRetryable } from '@etude/contracts/errors';
import { PAYLOAD_MAX_BYTES } from '@etude/contracts/queues';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import { abortError, endOf, type JobEnd, parseOr } from './job-end.js';
import { RedisKeys } from '../redis/keys.js';
import { connectRedis, isConnectionError, type QueueLogger, whileRedisAnswers } from '../redis/redis.js';

export interface AddOptions {
  /** 0 to 9; a higher one is taken first, and a job without one before all that have one. */
  readonly priority?: number;
}

/** Kept to answer a repeat with the first result. */
const COMPLETED_JOBS = { count: 1_000, age: 3_600 };
/** Entries of BullMQ's stream of events, which nobody reads and which can't be turned off. */
const EVENTS_MAX = 10;
const READDS_MAX = 3;
/** Intervals of looking at a job that is waited for. */
const LOOK_FIRST_MS = 20;
const LOOK_MOST_MS = 500;

/**
 * Adds jobs and waits for them, over one connection. A patient one waits out an outage of Redis instead of failing in seconds: for
 * workers, whose jobs would only be tried again.
 *
 * @throws EtudeError JOB_PAYLOAD_INVALID, PAYLOAD_TOO_LARGE, QUEUE_UNAVAILABLE; every method
 */
export class Producer {
  readonly redis: Redis;
  readonly keys: RedisKeys;
  readonly #queues = new Map<string, Queue>();

  constructor(
    redisUrl: string,
    prefix: string,
    private readonly logger?: QueueLogger,
    { patient = false }: { readonly patient?: boolean } = {},
  ) {
    this.redis = connectRedis(redisUrl, patient ? 'worker' : 'producer', logger);
    this.keys = new RedisKeys(prefix);
  }

  /** The same payload twice is one job, for as long as the job is kept. */
  async add<P extends z.ZodType, R extends z.ZodType>(
    declaration: QueueDeclaration<P, R>,
    payload: z.infer<P>,
    options: AddOptions = {},
  ): Promise<void> {
    const { jobId, data } = checked(declaration, payload);
    const { priority } = options;
    // BullMQ takes 1 before 10, and what has none before all.
    const urgency = priority === undefined ? {} : { priority: Math.max(1, URGENCY_LEAST - priority) };
    const added = this.queue(declaration.name).add(declaration.name, data, { jobId, ...declaredOptions(declaration), ...urgency });
    await whileRedisAnswers(this.redis, added);
  }

  /** Adds the job of a durable record. Redis away: the record is in its outbox, and the reconciler adds the job. */
  async addForRecord<P extends z.ZodType, R extends z.ZodType>(
    declaration: QueueDeclaration<P, R>,
    payload: z.infer<P>,
    options: AddOptions = {},
  ): Promise<void> {
    try {
      await this.add(declaration, payload, options);
    } catch (error) {
      if (errorCode(error) !== 'QUEUE_UNAVAILABLE') throw error;
    }
  }

  /**
   * Adds a job and waits for its result. A job that ended before answers at once; one that is dead for a reason
   * that may have passed is put back to work.
   *
   * @throws the EtudeError that the job died of; AbortError when `signal` aborts (the job goes on)
   */
  async addAndWait<P extends z.ZodType, R extends z.ZodType>(
    declaration: QueueDeclaration<P, R>,
    payload: z.infer<P>,
    signal: AbortSignal,
    options: AddOptions = {},
  ): Promise<z.infer<R>> {
    const { jobId } = checked(declaration, payload);
    for (let round = 1; ; round++) {
      const startedAt = Date.now();
      if (signal.aborted) throw abortError(signal);
      await this.add(declaration, payload, options);
      const end = await this.#untilEnd(declaration.name, jobId, signal);
      if (end.kind === 'completed')
        return parseOr(declaration.result, end.value, 'INTERNAL', `the result of ${declaration.name} job ${jobId}`);
      const again = round < READDS_MAX && (end.kind === 'missing' || (await this.revive(declaration.name, jobId, end.error, startedAt)));
      if (!again)
        throw end.kind === 'failed'
          ? end.error
          : new EtudeError('QUEUE_UNAVAILABLE', `job ${jobId} of ${declaration.name} was removed before it ended; try again`);
    }
  }

  /** Looks at growing intervals. Goes on while Redis is away. @throws AbortError when `signal` aborts */
  async #untilEnd(queueName: string, jobId: string, signal: AbortSignal): Promise<JobEnd> {
    for (let waitMs = LOOK_FIRST_MS; ; waitMs = Math.min(waitMs * 2, LOOK_MOST_MS)) {
      try {
        const end = await this.endOf(queueName, jobId);
        if (end) return end;
      } catch (error) {
        if (errorCode(error) !== 'QUEUE_UNAVAILABLE') throw error;
      }
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) throw abortError(signal);
    }
  }

  /** Removes a job that has ended, so that its id can be used again. A running one stays. */
  async forget(queueName: string, jobId: string): Promise<void> {
    const job = await whileRedisAnswers(this.redis, this.queue(queueName).getJob(jobId));
    if (job?.finishedOn) await whileRedisAnswers(this.redis, job.remove());
  }

  /** null while the job has not ended. */
  async endOf(queueName: string, jobId: string): Promise<JobEnd | null> {
    return whileRedisAnswers(this.redis, endOf(this.queue(queueName), jobId));
  }

  /** Removes a job that was found dead from before `since`, for a reason worth another try. @returns whether it did */
  async revive(queueName: string, jobId: string, error: Error, since: number): Promise<boolean> {
    // A caller waits again for a job that cost its workers where the job was redriven, or the caller was taken over.
    if (!isRetryable(error) && errorCode(error) !== 'WORKER_LOST') return false;
    const job = await whileRedisAnswers(this.redis, this.queue(queueName).getJob(jobId));
    if (!job?.finishedOn || job.finishedOn >= since) return false;
    await whileRedisAnswers(this.redis, job.remove());
    return true;
  }

  /** Puts a waiting job that has a priority behind those that have none. */
  async urge(queueName: string, jobId: string): Promise<void> {
    const job = await whileRedisAnswers(this.redis, this.queue(queueName).getJob(jobId));
    if (!job?.priority) return;
    await whileRedisAnswers(this.redis, job.changePriority({ priority: 0 }));
  }

  /** For the rest of this library: BullMQ's queue of that name. */
  queue(name: string): Queue {
    const known = this.#queues.get(name);
    if (known) return known;
    const queue = new Queue(name, { connection: this.redis, prefix: this.keys.queues, streams: { events: { maxLen: EVENTS_MAX } } });
    queue.on('error', (error) => this.#report(name, error));
    this.#queues.set(name, queue);
    return queue;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.redis.disconnect();
  }

  /** The connection reports its own outages. */
  #report(queue: string, error: Error): void {
    if (!isConnectionError(error)) this.logger?.error({ queue, error: error.message }, 'queue error');
  }
}

function checked<P extends z.ZodType>(declaration: QueueDeclaration<P>, payload: unknown): { jobId: string; data: z.infer<P> } {
  const data = parseOr(declaration.payload, payload, 'JOB_PAYLOAD_INVALID', `the payload for ${declaration.name}`);
  const bytes = Buffer.byteLength(JSON.stringify(data));
  if (bytes > PAYLOAD_MAX_BYTES) {
    throw new EtudeError(
      'PAYLOAD_TOO_LARGE',
      `the payload for ${declaration.name} has ${bytes} bytes, more than ${PAYLOAD_MAX_BYTES}; put the data into its store and send its id`,
    );
  }
  const jobId = declaration.jobId(data);
  if (jobId.includes(':') || /^\d*$/.test(jobId)) {
    throw new EtudeError('JOB_PAYLOAD_INVALID', `job id "${jobId}" for ${declaration.name} must not be empty, a number, or hold ":"`);
  }
  return { jobId, data };
}

const URGENCY_LEAST = 10;

/** What a declaration says about every job of its queue. */
export function declaredOptions(declaration: QueueDeclaration) {
  return {
    attempts: declaration.attemptsMax,
    backoff: { type: 'exponential', delay: declaration.backoffMs },
    removeOnComplete: COMPLETED_JOBS,
    removeOnFail: false,
    stackTraceLimit: 0,
  };
}
