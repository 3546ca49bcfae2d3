import type { Worker } from 'bullmq';
import { type LeaseEnd, LeaseEnded } from './job-end.js';

export interface RunningJob {
  readonly id: string;
  readonly token: string;
  readonly stop: AbortController;
  /** Why this process stopped the job; null where it did not. */
  lease: LeaseEnd | null;
  settled: Promise<unknown>;
}

const RENEWALS_PER_LOCK = 2.5;

/**
 * The jobs that this process runs. One timer renews all their locks.
 *
 * Why not BullMQ's own renewal: it tracks runs by job id. If a process loses a job and takes it again, the end of the first run
 * would stop the renewal for the second. This class tracks runs by token.
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

  /** Stops an earlier run of the job and waits for its end. After a lock expired, this process may fetch a job that it still runs. */
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
