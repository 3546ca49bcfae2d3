import { QueueEvents } from 'bullmq';
import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { failureError, readFailure } from './job-failure.js';
import { abortError } from './lease.js';

/** How a job ended; `missing` when it was removed, so that nobody can tell. */
export type JobEnd = { kind: 'completed'; value: unknown } | { kind: 'failed'; error: Error } | { kind: 'missing' };

interface Waiter {
  readonly end: (end: JobEnd) => void;
  /** Before that, a job that is not there is no job that was removed. */
  added: boolean;
}

/** A lost message (a reconnect, a trimmed stream) costs at most this long. */
const POLL_MS = 1_000;

/**
 * Tells when jobs of one queue end: one connection for any number of waiters. Ends are heard from the queue's event stream,
 * and read from the job where an event may have been missed.
 */
export class JobResults {
  readonly #waiters = new Map<string, Set<Waiter>>();
  #events: Promise<QueueEvents> | null = null;
  #poll: NodeJS.Timeout | null = null;

  constructor(
    private readonly queue: Queue,
    private readonly connection: Redis,
    private readonly prefix: string,
    private readonly onError: (error: Error) => void,
  ) {}

  /** Resolves once ends are heard; call it before adding the job. */
  async listen(): Promise<void> {
    this.#events ??= this.#open();
    try {
      await this.#events;
    } catch (error) {
      this.#events = null;
      throw error;
    }
  }

  /**
   * Adds a job and waits for its end.
   *
   * @throws AbortError when `signal` aborts; whatever `add` throws
   */
  async runToEnd(jobId: string, add: () => Promise<void>, signal: AbortSignal): Promise<JobEnd> {
    if (signal.aborted) throw abortError(signal);
    const { promise, resolve, reject } = Promise.withResolvers<JobEnd>();
    const waiter: Waiter = { end: resolve, added: false };
    const onAbort = () => reject(abortError(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    this.#join(jobId, waiter);
    try {
      void add().then(() => (waiter.added = true), reject);
      return await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#leave(jobId, waiter);
    }
  }

  async close(): Promise<void> {
    this.#stopPolling();
    const events = await this.#events?.catch(() => null);
    await events?.close();
    for (const jobId of this.#waiters.keys()) this.#settle(jobId, { kind: 'failed', error: new Error('the producer was closed') });
  }

  async #open(): Promise<QueueEvents> {
    // From an id, not from "now": what ends before the first blocking read must be heard too.
    const newest = await this.connection.xrevrange(this.queue.toKey('events'), '+', '-', 'COUNT', 1);
    // Never connected itself: QueueEvents makes its own from it, which has to wait out an outage.
    const connection = this.connection.duplicate({ lazyConnect: true, maxRetriesPerRequest: null, commandTimeout: undefined });
    const events = new QueueEvents(this.queue.name, { connection, prefix: this.prefix, lastEventId: newest[0]?.[0] ?? '0-0' });
    events.on('error', this.onError);
    events.on('completed', ({ jobId, returnvalue }) => this.#settle(jobId, { kind: 'completed', value: returnvalue }));
    events.on('failed', ({ jobId, failedReason }) =>
      this.#settle(jobId, { kind: 'failed', error: failureError(readFailure(failedReason)) }),
    );
    events.on('duplicated', ({ jobId }) => this.#check(jobId));
    return events;
  }

  #join(jobId: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(jobId) ?? new Set();
    this.#waiters.set(jobId, waiters.add(waiter));
    this.#poll ??= setInterval(() => this.#checkAll(), POLL_MS);
  }

  #leave(jobId: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(jobId);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiters.delete(jobId);
    if (this.#waiters.size === 0) this.#stopPolling();
  }

  #settle(jobId: string, end: JobEnd): void {
    for (const waiter of this.#waiters.get(jobId) ?? []) if (end.kind !== 'missing' || waiter.added) waiter.end(end);
  }

  #checkAll(): void {
    for (const jobId of this.#waiters.keys()) this.#check(jobId);
  }

  #check(jobId: string): void {
    if (!this.#waiters.has(jobId)) return;
    // Redis away: the next poll asks again.
    endOf(this.queue, jobId).then((end) => end && this.#settle(jobId, end), this.onError);
  }

  #stopPolling(): void {
    if (this.#poll) clearInterval(this.#poll);
    this.#poll = null;
  }
}

/** null while the job has not ended. */
export async function endOf(queue: Queue, jobId: string): Promise<JobEnd | null> {
  const job = (await queue.getJob(jobId)) as Job | undefined;
  if (!job) return { kind: 'missing' };
  if (!job.finishedOn) return null;
  if (job.failedReason) return { kind: 'failed', error: failureError(readFailure(job.failedReason)) };
  return { kind: 'completed', value: job.returnvalue };
}
