import type { Worker } from 'bullmq';
import { type LeaseEnd, LeaseEnded } from './job-end.js';

/** One job in this process, from its start to its end. */
export interface RunningJob {
  readonly id: string;
  readonly token: string;
  readonly stop: AbortController;
  /** Why it was stopped by this process, if it was. */
  lease: LeaseEnd | null;
  settled: Promise<unknown>;
}

/** Renewals that may be missed before a lock runs out. */
const RENEWALS_PER_LOCK = 2.5;

/**
 * The jobs that this process holds, and their locks: one timer renews all of them.
 *
 * Why not BullMQ's own renewal: it tracks by job id, so that a job that was lost and taken again by the same process loses the
 * renewal of its second run when the first one ends. This one tracks by token.
 */
export class RunningJobs {
  readonly #jobs = new Map<string, RunningJob>();
  #timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly worker: () => Worker,
    private readonly lockMs: number,
    private readonly onError: (error: Error) => void,
  ) {}

  start(id: string, token: string): RunningJob {
    const job: RunningJob = { id, token, stop: new AbortController(), lease: null, settled: Promise.resolve() };
    this.#jobs.set(token, job);
    this.#timer ??= setInterval(() => void this.#renew(), this.lockMs / RENEWALS_PER_LOCK);
    return job;
  }

  end(job: RunningJob): void {
    this.#jobs.delete(job.token);
    if (this.#jobs.size > 0 || !this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  stopAll(): void {
    for (const job of this.#jobs.values()) stopJob(job, 'shutdown');
  }

  /** A lock that expired unrenewed lets this process fetch a job it is still running. */
  async stopEarlierRun(id: string): Promise<void> {
    for (const job of [...this.#jobs.values()].filter((other) => other.id === id)) {
      stopJob(job, 'lost');
      await job.settled.catch(() => null);
    }
  }

  async #renew(): Promise<void> {
    const jobs = [...this.#jobs.values()];
    try {
      const lost = await this.worker().extendJobLocks(
        jobs.map(({ id }) => id),
        jobs.map(({ token }) => token),
        this.lockMs,
      );
      for (const job of jobs) if (lost.includes(job.id) && this.#jobs.has(job.token)) stopJob(job, 'lost');
    } catch (error) {
      this.onError(error as Error);
    }
  }
}

function stopJob(job: RunningJob, lease: LeaseEnd): void {
  if (job.stop.signal.aborted) return;
  job.lease = lease;
  job.stop.abort(new LeaseEnded(lease));
}
