import { setTimeout as sleep } from 'node:timers/promises';
import { abortError, errorCode, EtudeError, isRetryable } from '@etude/contracts/errors';
import { PAYLOAD_MAX_BYTES, type QueueDeclaration } from '@etude/contracts/queues';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { type Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { z } from 'zod';
import { deathOf, type JobEnd, parseOr } from './job-end.js';
import { requireSlot } from '../redis/connector.js';
import { RedisKeys } from '../redis/keys.js';
import { connectRedis, isConnectionError, type QueueLogger, whileRedisAnswers } from '../redis/redis.js';

export interface AddOptions {
  /** From 1. Jobs without a priority are taken first, then jobs with the lowest number. */
  readonly priority?: number;
  /** The job is taken after this time. Default 0. */
  readonly delayMs?: number;
  /** An ended job of the same id is removed first. */
  readonly again?: boolean;
  /** W3C `traceparent` of the span that the job continues. Absent: the current span's. */
  readonly traceparent?: string;
}

/** Retention of completed jobs (age in seconds), so that a repeat is answered with the first result. */
const COMPLETED_JOBS = { count: 1_000, age: 3_600 };
/** Entries kept in BullMQ's event stream. Nobody reads it, but it can't be turned off. */
const EVENTS_MAX = 10;
/** First and longest interval at which `addAndWait` polls its job. */
const LOOK_FIRST_MS = 20;
const LOOK_MOST_MS = 500;

/**
 * Adds jobs and waits for their results, over one connection. With `patient`, calls wait for Redis to come back instead of failing within seconds.
 * Workers use `patient`, because a failed call would only make their job run again.
 * @throws EtudeError JOB_PAYLOAD_INVALID, PAYLOAD_TOO_LARGE, QUEUE_UNAVAILABLE; every method
 */
export class Producer {
  readonly redis: Redis;
  readonly keys: RedisKeys;
  readonly tracing: Tracing;
  readonly #queues = new Map<string, Queue>();

  constructor(
    redisUrl: string,
    prefix: string,
    readonly logger?: QueueLogger,
    { patient = false, tracing = UNTRACED }: { readonly patient?: boolean; readonly tracing?: Tracing } = {},
  ) {
    requireSlot(redisUrl, prefix);
    this.tracing = tracing;
    this.redis = connectRedis(redisUrl, patient ? 'worker' : 'producer', logger);
    this.keys = new RedisKeys(prefix);
  }

  /** Adds a job. Adding the same payload again adds nothing for as long as the first job is kept. */
  async add<P extends z.ZodType, R extends z.ZodType>(
    declaration: QueueDeclaration<P, R>,
    payload: z.infer<P>,
    options: AddOptions = {},
  ): Promise<void> {
    const { jobId, data } = checked(declaration, payload);
    const { priority, delayMs: delay = 0, again, traceparent = this.tracing.current } = options;
    if (again) await this.forget(declaration.name, jobId);
    const urgency = priority === undefined ? {} : { priority };
    const telemetry = traceparent === undefined ? {} : { telemetry: { metadata: traceparent } };
    const settings = { jobId, ...declaredOptions(declaration), ...urgency, ...telemetry, delay };
    const added = this.queue(declaration.name).add(declaration.name, data, settings);
    await whileRedisAnswers(this.redis, added);
  }

  /** Adds the job of a durable record. Doesn't fail when Redis is away: the record has an outbox entry, so the reconciler adds the job. */
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
   * Adds a job and waits for its result. If the job has completed before, its result is returned at once. If it was dead before for a
   * retryable reason, it is run again.
   *
   * @throws the EtudeError that the job died of; AbortError when `signal` aborts (the job continues)
   */
  async addAndWait<P extends z.ZodType, R extends z.ZodType>(
    declaration: QueueDeclaration<P, R>,
    payload: z.infer<P>,
    signal: AbortSignal,
  ): Promise<z.infer<R>> {
    const { jobId } = checked(declaration, payload);
    const startedAt = Date.now();
    for (;;) {
      if (signal.aborted) throw abortError(signal);
      await this.add(declaration, payload);
      const end = await this.#untilEnd(declaration.name, jobId, signal);
      if (end.kind === 'completed')
        return parseOr(declaration.result, end.value, 'INTERNAL', `the result of ${declaration.name} job ${jobId}`);
      if (end.kind === 'failed' && !(await this.revive(declaration.name, jobId, end.error, startedAt))) throw end.error;
    }
  }

  /** Polls the job at growing intervals, also while Redis is away. @throws AbortError when `signal` aborts */
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

  /** Removes a job that ended before `before` (ms since 1970). A waiting or running job stays. @returns whether the job was removed */
  async forget(queueName: string, jobId: string, before = Infinity): Promise<boolean> {
    const job = await whileRedisAnswers(this.redis, this.queue(queueName).getJob(jobId));
    if (!job?.finishedOn || job.finishedOn >= before) return false;
    await whileRedisAnswers(this.redis, job.remove());
    return true;
  }

  /** How a job ended; null while it has not ended. */
  async endOf(queueName: string, jobId: string): Promise<JobEnd | null> {
    const job = (await whileRedisAnswers(this.redis, this.queue(queueName).getJob(jobId))) as Job | undefined;
    if (!job) return { kind: 'missing' };
    if (!job.finishedOn) return null;
    const death = deathOf(job);
    if (!death) return { kind: 'completed', value: job.returnvalue };
    return { kind: 'failed', error: new EtudeError(death.code, death.message, death.path ? { field: death.path } : {}) };
  }

  /** Removes a job that died before `since` (ms since 1970) of a retryable error or WORKER_LOST. @returns whether the job was removed */
  async revive(queueName: string, jobId: string, error: Error, since: number): Promise<boolean> {
    // WORKER_LOST counts too: a caller asks again only if its own job was redriven, or was taken over by another worker.
    return (isRetryable(error) || errorCode(error) === 'WORKER_LOST') && this.forget(queueName, jobId, since);
  }

  /** Removes the priority of a waiting job. It then comes after the jobs without a priority, and before all others. */
  async urge(queueName: string, jobId: string): Promise<void> {
    const job = await whileRedisAnswers(this.redis, this.queue(queueName).getJob(jobId));
    if (!job?.priority) return;
    await whileRedisAnswers(this.redis, job.changePriority({ priority: 0 }));
  }

  /** BullMQ's queue of that name; for this library only. */
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

  #report(queue: string, error: Error): void {
    if (!isConnectionError(error)) this.logger?.error({ queue, error: error.message }, 'queue error');
  }
}

function checked<P extends z.ZodType>(declaration: QueueDeclaration<P>, payload: unknown): { jobId: string; data: z.infer<P> } {
  const data = parseOr(declaration.payload, payload, 'JOB_PAYLOAD_INVALID', `the payload for ${declaration.name}`);
  const bytes = Buffer.byteLength(JSON.stringify(data));
  if (bytes > PAYLOAD_MAX_BYTES) {
    const message = `the payload for ${declaration.name} has ${bytes} bytes, more than ${PAYLOAD_MAX_BYTES}; put the data into its store and send its id`;
    throw new EtudeError('PAYLOAD_TOO_LARGE', message);
  }
  return { jobId: declaration.jobId(data), data };
}

export function declaredOptions(declaration: QueueDeclaration) {
  return {
    attempts: declaration.attemptsMax,
    backoff: { type: 'exponential', delay: declaration.backoffMs },
    removeOnComplete: COMPLETED_JOBS,
    removeOnFail: false,
    stackTraceLimit: 0,
  };
}
