import { EtudeError, isRetryable } from '@etude/contracts/errors';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { UnrecoverableError, WaitingError, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import type { z } from 'zod';
import { type JobFailure, parseOr, readFailure, toFailure } from './job-end.js';
import { RedisKeys } from '../redis/keys.js';
import { connectRedis, isConnectionError, type QueueLogger } from '../redis/redis.js';
import { RunningJobs } from './running-jobs.js';
import type { RunningJob } from './running-jobs.js';

export interface JobContext {
  readonly jobId: string;
  /** From 1. */
  readonly attempt: number;
  readonly isLastAttempt: boolean;
  /** How often a worker died with this job. */
  readonly stalledCount: number;
  /** Aborts on shutdown, when the lock is lost (see `leaseEndOf`), and when the declared time is over (DEADLINE_EXCEEDED). */
  readonly signal: AbortSignal;
}

export type JobHandler<P extends z.ZodType, R extends z.ZodType> = (payload: z.infer<P>, ctx: JobContext) => Promise<z.input<R>>;

export interface ConsumerOptions<P extends z.ZodType = z.ZodType> {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly concurrency: number;
  readonly logger?: QueueLogger;
  /** A job of a worker that died is taken by another after this and one check. Default 2,000. */
  readonly lockMs?: number;
  /** Default 1,000. */
  readonly stalledCheckMs?: number;
  /** Called after a job became a dead letter; `payload` is null where it does not parse. Best effort: a crash may skip it. */
  readonly onDead?: (payload: z.infer<P> | null, failure: JobFailure, diedAt: number) => Promise<void>;
}

export type Consumer = Pick<QueueConsumer<z.ZodType, z.ZodType>, 'queue' | 'ready' | 'check' | 'close'>;

/** A handler that ignores its signal gets this long after the declared time; then the job fails without it. */
const OVERTIME_MS = 5_000;
/** Seconds of one blocking wait for work. */
const DRAIN_DELAY_S = 10;
/** In effect never: BullMQ's own limit gives no reason; `workersLostMax` does. */
const STALLED_COUNT_MAX = 1_000_000;

/**
 * Runs `handler` for each job of a queue.
 *
 * A payload that does not parse, and an error that is not retryable, make a dead letter at once; a retryable one after the
 * declared attempts. The reason is stored as JSON (`readFailure`).
 */
export function consume<P extends z.ZodType, R extends z.ZodType>(
  declaration: QueueDeclaration<P, R>,
  handler: JobHandler<P, R>,
  options: ConsumerOptions<P>,
): Consumer {
  return new QueueConsumer(declaration, handler, options);
}

class QueueConsumer<P extends z.ZodType, R extends z.ZodType> {
  readonly #redis;
  readonly #worker: Worker;
  readonly #running: RunningJobs;
  #closing = false;
  /** Name of its queue. */
  readonly queue: string;

  constructor(
    private readonly declaration: QueueDeclaration<P, R>,
    private readonly handler: JobHandler<P, R>,
    private readonly options: ConsumerOptions<P>,
  ) {
    this.queue = declaration.name;
    const lockMs = options.lockMs ?? 2_000;
    this.#redis = connectRedis(options.redisUrl, 'worker', options.logger);
    this.#running = new RunningJobs(
      () => this.#worker,
      lockMs,
      (error) => this.#report(error),
    );
    this.#worker = new Worker(declaration.name, (job, token) => this.#process(job, token ?? ''), {
      connection: this.#redis,
      prefix: new RedisKeys(options.prefix).queues,
      concurrency: options.concurrency,
      lockDuration: lockMs,
      skipLockRenewal: true,
      stalledInterval: options.stalledCheckMs ?? 1_000,
      maxStalledCount: STALLED_COUNT_MAX,
      drainDelay: DRAIN_DELAY_S,
      // BullMQ's 15 s would leave a worker idle that long after a short outage.
      runRetryDelay: 500,
    });
    this.#worker.on('error', (error) => this.#report(error));
    this.#worker.on('failed', (job, error) => this.#onFailed(job, error));
  }

  /** Resolves once jobs are being taken. */
  async ready(): Promise<void> {
    await this.#worker.waitUntilReady();
  }

  /** Rejects when this worker can't take jobs now: for a readiness check. */
  async check(): Promise<void> {
    if (this.#closing || !this.#worker.isRunning())
      throw new EtudeError('QUEUE_UNAVAILABLE', `the worker of ${this.declaration.name} takes no jobs; restart the service`);
    if (this.#redis.status !== 'ready')
      throw new EtudeError(
        'QUEUE_UNAVAILABLE',
        `the worker of ${this.declaration.name} has no connection to Redis (${this.#redis.status})`,
      );
    await this.#redis.ping();
  }

  /** Takes no more jobs, aborts the running ones, which go back to waiting at once, and waits for them at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    const closed = this.#worker.close();
    this.#running.stopAll();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([closed, new Promise((resolve) => (timer = setTimeout(resolve, graceMs)))]);
    clearTimeout(timer);
    await this.#worker.disconnect();
    this.#redis.disconnect();
  }

  async #process(job: Job, token: string): Promise<z.output<R>> {
    const id = job.id ?? '';
    await this.#running.stopEarlierRun(id);
    const running = this.#running.start(id, token);
    if (this.#closing) this.#running.stopAll();
    const work = this.#run(job, running);
    running.settled = work;
    try {
      return await work;
    } catch (error) {
      if (running.lease === 'shutdown') throw await this.#giveBack(job, token);
      throw asJobError(error);
    } finally {
      this.#running.end(running);
    }
  }

  async #run(job: Job, running: RunningJob): Promise<z.output<R>> {
    running.stop.signal.throwIfAborted();
    const payload = this.#payloadOf(job);
    this.#refuseKiller(job);
    const attempt = job.attemptsMade + 1;
    const { signal } = running.stop;
    const result = await withinTime(running.stop, this.declaration, () =>
      this.handler(payload, {
        jobId: running.id,
        attempt,
        isLastAttempt: attempt >= (job.opts.attempts ?? 1),
        stalledCount: job.stalledCounter,
        signal,
      }),
    );
    return parseOr(this.declaration.result, result, 'INTERNAL', `the result of ${this.declaration.name} job ${running.id}`);
  }

  /** @throws EtudeError WORKER_LOST for a job that has taken one worker after another down with it */
  #refuseKiller({ id, stalledCounter }: Job): void {
    const { name, workersLostMax } = this.declaration;
    if (workersLostMax === undefined || stalledCounter <= workersLostMax) return;
    throw new EtudeError(
      'WORKER_LOST',
      `${stalledCounter} workers were lost with ${name} job ${id}; look in their log for what ends them, then redrive it`,
    );
  }

  #payloadOf(job: Job): z.infer<P> {
    const { declaration } = this;
    const firedAt = job.repeatJobKey ? job.opts.prevMillis : undefined;
    const payload = parseOr(declaration.payload, job.data, 'JOB_PAYLOAD_INVALID', `the payload of ${declaration.name} job ${job.id}`);
    return firedAt !== undefined && declaration.firing ? declaration.firing(payload, firedAt) : payload;
  }

  /** Waiting again, as if it had never been taken: no attempt is counted. */
  async #giveBack(job: Job, token: string): Promise<Error> {
    await job.moveToWait(token);
    // BullMQ wakes no other worker for a job with a priority that is given back.
    await this.#redis.zadd(this.#worker.toKey('marker'), 0, '0');
    return new WaitingError();
  }

  #onFailed(job: Job | undefined, error: Error): void {
    const { onDead, logger } = this.options;
    if (!job?.finishedOn) return;
    const failure = readFailure(error.message);
    // A log's own `code` is a program, and is left out.
    const { code: errorCode, message: reason, path } = failure;
    logger?.error({ queue: this.declaration.name, jobId: job.id, errorCode, reason, path }, 'job is a dead letter');
    const payload = this.declaration.payload.safeParse(job.data);
    onDead?.(payload.success ? payload.data : null, failure, job.finishedOn).catch((cause: unknown) => this.#report(cause as Error));
  }

  /** The connection reports its own outages; the end of a lock shows in the job's signal. */
  #report(error: Error): void {
    if (isConnectionError(error) || this.#closing) return;
    this.options.logger?.error({ queue: this.declaration.name, error: error.message }, 'queue error');
  }
}

async function withinTime<T>(stop: AbortController, declaration: QueueDeclaration, work: () => Promise<T>): Promise<T> {
  const timers: NodeJS.Timeout[] = [];
  const late = new EtudeError('DEADLINE_EXCEEDED', `a ${declaration.name} job ran longer than ${declaration.timeoutMs} ms`);
  const overtime = new Promise<never>((_, reject) => {
    timers.push(setTimeout(() => stop.abort(late), Math.min(declaration.timeoutMs, 2 ** 31 - 1)));
    timers.push(setTimeout(() => reject(late), Math.min(declaration.timeoutMs + OVERTIME_MS, 2 ** 31 - 1)));
  });
  try {
    return await Promise.race([work(), overtime]);
  } catch (error) {
    throw stop.signal.reason === late ? late : error;
  } finally {
    timers.forEach(clearTimeout);
  }
}

function asJobError(error: unknown): Error {
  const text = JSON.stringify(toFailure(error));
  return isRetryable(error) ? new Error(text, { cause: error }) : new UnrecoverableError(text);
}
