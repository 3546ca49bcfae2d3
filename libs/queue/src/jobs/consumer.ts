import { setTimeout as sleep } from 'node:timers/promises';
import { EtudeError, isAbort } from '@etude/contracts/errors';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { type SpanStart, type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { type Job, WaitingError, Worker } from 'bullmq';
import type { z } from 'zod';
import { asJobError, type LeaseEnd, LeaseEnded, leaseEndOf, parseOr, readFailure, toFailure, withinTime } from './job-end.js';
import { requireSlot } from '../redis/connector.js';
import { RedisKeys } from '../redis/keys.js';
import { requireCommands } from '../redis/readiness.js';
import { connectRedis, isConnectionError, outageOf, type QueueLogger } from '../redis/redis.js';

export interface JobContext {
  readonly jobId: string;
  /** Counted from 1. */
  readonly attempt: number;
  readonly isLastAttempt: boolean;
  /** Aborts on shutdown, when the lock is lost (see `leaseEndOf`), and after the queue's `timeoutMs` (DEADLINE_EXCEEDED). */
  readonly signal: AbortSignal;
  /** Aborts when the worker begins to close. A handler that throws the reason of this signal returns the job to the queue. */
  readonly draining: AbortSignal;
}

export type JobHandler<P extends z.ZodType, R extends z.ZodType> = (payload: z.infer<P>, ctx: JobContext) => Promise<z.input<R>>;

export interface ConsumerOptions {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly concurrency: number;
  readonly logger?: QueueLogger;
  /** Absent: jobs have no spans. */
  readonly tracing?: Tracing;
  /** ms that a job's lock lasts without renewal. Another worker takes a dead worker's job after this time and one check. Default 2,000. */
  readonly lockMs?: number;
  /** ms between checks for jobs whose lock ran out. Default 1,000. */
  readonly stalledCheckMs?: number;
}

/** Decides whether a fetched job begins. @returns a function to call at the job's end; null: the job returns to the queue, without an attempt */
export type Admission<P> = (payload: P, job: { readonly priority: number }, signal: AbortSignal) => Promise<(() => void) | null>;

export type Consumer = Pick<QueueConsumer<z.ZodType, z.ZodType>, 'queue' | 'ready' | 'check' | 'drain' | 'close'>;

/** How long one blocking read of the queue waits for a job. */
const DRAIN_DELAY_S = 10;
/** How long a job waits at least after Redis refused its writes. */
const UNAVAILABLE_AGAIN_MS = 1_000;
const REFUSALS_APART_MS = 10_000;
/** Turns off BullMQ's own limit, whose failures have no reason. The queue's `workersLostMax` is used instead. */
const STALLED_COUNT_MAX = 1_000_000;

/**
 * Runs `handler` for each job of a queue.
 *
 * A job becomes a dead letter at once if its payload doesn't parse or its error is not retryable, and otherwise when its attempts are used
 * up. QUEUE_UNAVAILABLE doesn't use up an attempt. A dead letter stores its reason as JSON (`readFailure`).
 */
export function consume<P extends z.ZodType, R extends z.ZodType>(
  declaration: QueueDeclaration<P, R>,
  handler: JobHandler<P, R>,
  options: ConsumerOptions & { readonly admit?: Admission<z.infer<P>> },
): Consumer {
  return new QueueConsumer(declaration, handler, options);
}

const NOT_ADMITTED = new Error('not admitted');
const NOTHING = () => undefined;

interface RunningJob {
  readonly stop: AbortController;
  readonly settled: Promise<unknown>;
}

class QueueConsumer<P extends z.ZodType, R extends z.ZodType> {
  readonly #redis;
  readonly #worker: Worker;
  readonly #running = new Map<string, RunningJob>();
  readonly #draining = new AbortController();
  #closed: Promise<void> = Promise.resolve();
  #isClosed = false;
  #refusalNoted = -Infinity;
  readonly queue: string;

  constructor(
    private readonly declaration: QueueDeclaration<P, R>,
    private readonly handler: JobHandler<P, R>,
    private readonly options: ConsumerOptions & { readonly admit?: Admission<z.infer<P>> },
  ) {
    this.queue = declaration.name;
    requireSlot(options.redisUrl, options.prefix);
    this.#redis = connectRedis(options.redisUrl, 'worker', options.logger);
    this.#worker = new Worker(declaration.name, (job, token) => this.#process(job, token ?? ''), {
      connection: this.#redis,
      prefix: new RedisKeys(options.prefix).queues,
      concurrency: options.concurrency,
      lockDuration: options.lockMs ?? 2_000,
      stalledInterval: options.stalledCheckMs ?? 1_000,
      maxStalledCount: STALLED_COUNT_MAX,
      drainDelay: DRAIN_DELAY_S,
      // With BullMQ's default a worker would stay idle for 15 s after a short outage.
      runRetryDelay: 500,
    });
    this.#worker.on('error', (error) => this.#report(error));
    this.#worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => this.#stop(id, 'lost')));
    this.#worker.on('failed', (job, error) => this.#onFailed(job, error));
  }

  get #closing(): boolean {
    return this.#draining.signal.aborted;
  }

  async ready(): Promise<void> {
    await this.#worker.waitUntilReady();
  }

  /** For a readiness check. @throws EtudeError QUEUE_UNAVAILABLE when this worker can't take jobs now */
  async check(): Promise<void> {
    if (this.#closing || !this.#worker.isRunning())
      throw new EtudeError('QUEUE_UNAVAILABLE', `the worker of ${this.declaration.name} takes no jobs; restart the service`);
    if (this.#redis.status !== 'ready') {
      const message = `the worker of ${this.declaration.name} has no connection to Redis (${outageOf(this.#redis)}); check Redis`;
      throw new EtudeError('QUEUE_UNAVAILABLE', message);
    }
    await requireCommands(this.#redis, new RedisKeys(this.options.prefix));
  }

  /** Takes no more jobs. Resolves when the running jobs have ended, after `ms`, or when Redis goes away. */
  async drain(ms: number): Promise<void> {
    if (this.#closing) return;
    this.#draining.abort(new LeaseEnded('shutdown'));
    this.#closed = this.#worker.close();
    if (this.#redis.status !== 'ready') return;
    const ended = Promise.allSettled([...this.#running.values()].map(({ settled }) => settled));
    const lost = new Promise((resolve) => this.#redis.once('close', resolve));
    await Promise.race([ended, lost, sleep(ms, undefined, { ref: false })]);
  }

  /** Takes no more jobs and aborts running jobs, which go back to waiting. Waits at most `graceMs` for their handlers. */
  async close(graceMs: number): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.drain(0);
    for (const id of this.#running.keys()) this.#stop(id, 'shutdown');
    await Promise.race([this.#closed, sleep(graceMs, undefined, { ref: false })]);
    // `disconnect` waits for the connection's end, which ioredis doesn't report while it waits to reconnect.
    if (this.#redis.status === 'ready') await this.#worker.disconnect();
    this.#redis.disconnect();
  }

  async #process(job: Job, token: string): Promise<z.output<R>> {
    const id = job.id ?? '';
    const earlier = this.#running.get(id);
    if (earlier) {
      // After a lock expired, a worker may fetch a job that it still runs. BullMQ renews locks by job id, and the end of the earlier
      // run ends the renewal. So the job returns to the queue, and its next run gets its own renewal.
      this.#stop(id, 'lost');
      // The earlier run reports its own failure.
      await earlier.settled.catch(() => undefined);
      throw await this.#giveBack(job, token);
    }
    const stop = new AbortController();
    if (this.#closing) stop.abort(new LeaseEnded('shutdown'));
    const settled = this.#run(job, stop);
    this.#running.set(id, { stop, settled });
    try {
      return await settled;
    } catch (error) {
      const isHandedOver = leaseEndOf(stop.signal) === 'shutdown' || (this.#closing && isAbort(error));
      if (error === NOT_ADMITTED || isHandedOver) throw await this.#giveBack(job, token);
      const { code, message: reason } = toFailure(error);
      if (code === 'QUEUE_UNAVAILABLE') {
        this.#noteRefusal(id, reason);
        throw await this.#giveBackLater(job, token, stop.signal);
      }
      throw asJobError(error);
    } finally {
      this.#running.delete(id);
    }
  }

  #stop(id: string, lease: LeaseEnd): void {
    this.#running.get(id)?.stop.abort(new LeaseEnded(lease));
  }

  async #run(job: Job, stop: AbortController): Promise<z.output<R>> {
    const { signal } = stop;
    signal.throwIfAborted();
    const payload = this.#payloadOf(job);
    this.#refuseKiller(job);
    const attempt = job.attemptsMade + 1;
    const context = {
      jobId: job.id ?? '',
      attempt,
      isLastAttempt: attempt >= (job.opts.attempts ?? 1),
      signal,
      draining: this.#draining.signal,
    };
    const { tracing = UNTRACED, admit = async () => NOTHING } = this.options;
    const leave = await admit(payload, job, signal);
    if (leave === null) throw NOT_ADMITTED;
    try {
      const result = await withinTime(stop, this.declaration, () =>
        tracing.span(`process ${this.queue}`, spanOf(this.queue, job, attempt), () => this.handler(payload, context)),
      );
      return parseOr(this.declaration.result, result, 'INTERNAL', `the result of ${this.declaration.name} job ${job.id}`);
    } finally {
      leave();
    }
  }

  /** @throws EtudeError WORKER_LOST if more than `workersLostMax` workers have died while they ran the job */
  #refuseKiller({ id, stalledCounter }: Job): void {
    const { name, workersLostMax } = this.declaration;
    if (workersLostMax === undefined || stalledCounter <= workersLostMax) return;
    const message = `${stalledCounter} workers died while they ran ${name} job ${id}; find the cause in their logs, then redrive the job`;
    throw new EtudeError('WORKER_LOST', message);
  }

  #payloadOf(job: Job): z.infer<P> {
    const { declaration } = this;
    const firedAt = job.repeatJobKey ? job.opts.prevMillis : undefined;
    const payload = parseOr(declaration.payload, job.data, 'JOB_PAYLOAD_INVALID', `the payload of ${declaration.name} job ${job.id}`);
    return firedAt !== undefined && declaration.firing ? declaration.firing(payload, firedAt) : payload;
  }

  /** Returns the job to the queue without counting an attempt. @returns the error that BullMQ needs for this */
  async #giveBack(job: Job, token: string): Promise<Error> {
    await job.moveToWait(token);
    // BullMQ doesn't wake another worker when a job with a priority returns to the queue.
    await this.#redis.zadd(this.#worker.toKey('marker'), 0, '0');
    return new WaitingError();
  }

  /**
   * Returns a job to the queue once Redis takes writes again. No attempt counts, because a full Redis isn't the job's fault.
   *
   * @throws the abort reason if the worker closes or has lost the job's lock; another run begins when the lock has run out
   */
  async #giveBackLater(job: Job, token: string, signal: AbortSignal): Promise<Error> {
    for (;;) {
      await sleep(UNAVAILABLE_AGAIN_MS, undefined, { signal }).catch(NOTHING);
      const back = await this.#giveBack(job, token).catch((error: unknown) => {
        this.#report(error as Error);
        return null;
      });
      if (back !== null) return back;
      signal.throwIfAborted();
    }
  }

  #noteRefusal(jobId: string, reason: string): void {
    if (performance.now() - this.#refusalNoted < REFUSALS_APART_MS) return;
    this.#refusalNoted = performance.now();
    this.options.logger?.warn({ queue: this.declaration.name, jobId, reason }, 'Redis refuses writes of jobs; the jobs are tried again');
  }

  #onFailed(job: Job | undefined, error: Error): void {
    if (!job?.finishedOn) return;
    // Logged as `errorCode`, because logs leave out the key `code`, which means a program's source there.
    const { code: errorCode, message: reason, path } = readFailure(error.message);
    this.options.logger?.error({ queue: this.declaration.name, jobId: job.id, errorCode, reason, path }, 'job is a dead letter');
  }

  /** Logs an error of the queue. `connectRedis` logs outages itself. */
  #report(error: Error): void {
    if (isConnectionError(error) || this.#closing) return;
    this.options.logger?.error({ queue: this.declaration.name, error: error.message }, 'queue error');
  }
}

/** The span of one run of a job, which continues the trace of whoever added the job. */
function spanOf(queue: string, { id, opts, data, stalledCounter }: Job, attempt: number): SpanStart {
  const { tenant, taskId } = data as { readonly tenant?: string; readonly taskId?: string | null };
  const values = {
    'messaging.system': 'bullmq',
    'messaging.operation.type': 'process',
    'messaging.destination.name': queue,
    'messaging.message.id': id,
    'etude.tenant': tenant,
    'etude.task': taskId ?? undefined,
    'etude.job.attempt': attempt,
    'etude.job.workers_lost': stalledCounter,
  };
  return { kind: 'consumer', parent: opts.telemetry?.metadata, values };
}
