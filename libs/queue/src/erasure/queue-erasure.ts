import { taskOfExecution } from '@etude/contracts/ids';
import { QUEUES } from '@etude/contracts/queues';
import type { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { ExecutionStore } from '../executions/executions.js';
import type { Producer } from '../jobs/producer.js';
import { type ErasureSubject, markOf } from '../redis/keys.js';
import { isConnectionError, runScript } from '../redis/redis.js';
import { TaskStore } from '../tasks/task-store.js';
import { type Erased, keysStartingWith, type Trace } from './erasure-place.js';
import { JOBS, JOURNALS, ownedTasks, SCHEDULES, TASKS } from './job-places.js';
import { AFTER_TASKS, BEFORE_TASKS, DELETIONS } from './record-places.js';

/** Number of things by place, such as "queue.tasks". Empty places are left out. */
export type CountsByPlace = Readonly<Record<string, number>>;

export interface QueueErasureOptions {
  readonly skillIsGone: Erased['skillIsGone'];
  /** How long to wait for running tasks, executions and jobs after telling them to stop. Default 30,000. */
  readonly stopWaitMs?: number;
}

/**
 * The order matters. Executions and jobs are found by their tasks, so they come before the tasks. Jobs of wishes, and request ids, are found
 * because their records are missing, so they come after the records.
 */
const PLACES = [SCHEDULES, ...BEFORE_TASKS, ...JOBS, TASKS, ...AFTER_TASKS, JOURNALS, DELETIONS];
const STOP_WAIT_MS = 30_000;
const REWRITE_WAIT_MS = 60_000;
const POLL_MS = 100;

/**
 * Erases the data of an agent, a user or a tenant in everything that is kept in Redis. An erasure that was killed can be run again: each thing is
 * found by its content, not by notes of an earlier run.
 * @throws EtudeError QUEUE_UNAVAILABLE
 */
export class QueueErasure {
  constructor(
    private readonly producer: Producer,
    private readonly options: QueueErasureOptions,
  ) {}

  /**
   * Fences writes of older data, stops running work, and removes data until a pass leaves nothing. Work that doesn't stop in time is
   * left, and `find` counts it.
   *
   * @param newFrom ms since 1970; data made from then on stays. Absent: now.
   */
  async erase(tenant: string, subject: ErasureSubject, signal: AbortSignal, newFrom?: number): Promise<CountsByPlace> {
    const at = await this.#mark(tenant, subject, newFrom);
    const deadline = performance.now() + (this.options.stopWaitMs ?? STOP_WAIT_MS);
    const removed: Record<string, number> = {};
    for (let isLate = false; ; isLate = performance.now() > deadline) {
      const { running, ...erased } = await this.#erased(tenant, subject, at);
      if (!isLate) await this.#stop(erased, running);
      if (running.length === 0 || isLate) {
        const { done, left } = await this.#pass(erased, signal);
        for (const [place, count] of Object.entries(done)) add(removed, place, count);
        // BullMQ's event streams hold ids of jobs. Nobody reads them.
        for (const { name } of QUEUES) await this.producer.queue(name).trimEvents(0);
        if (left === 0 || isLate) return removed;
      }
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  /** Fences older data of an owner. A record needs no fence here, because memory refuses its writes. */
  async #mark(tenant: string, subject: ErasureSubject, newFrom?: number): Promise<number> {
    if ('record' in subject) return newFrom ?? Date.now();
    const { redis, keys } = this.producer;
    return Number(await runScript<string>(redis, 'markErased', [keys.erased(tenant)], [markOf(subject), newFrom ?? '']));
  }

  /** Counts the data made before `newFrom`. Default: all data. */
  async find(tenant: string, subject: ErasureSubject, newFrom = Number.MAX_SAFE_INTEGER): Promise<CountsByPlace> {
    const erased = await this.#erased(tenant, subject, newFrom);
    const found: Record<string, number> = {};
    for await (const [place, page] of tracesOf(erased)) add(found, place, page.length);
    return found;
  }

  /**
   * Makes Redis rewrite its append-only file, and waits for the end. Why: removed data stays in that file until it is rewritten.
   *
   * @returns sentences about each action and its outcome; a managed Redis may refuse the rewrite
   */
  async purge(signal: AbortSignal): Promise<readonly string[]> {
    const { redis } = this.producer;
    const deadline = performance.now() + REWRITE_WAIT_MS;
    try {
      if (!(await redis.info('persistence')).includes('aof_enabled:1')) return ['Redis keeps no append-only file', SNAPSHOT];
      // A rewrite in progress may have begun before the removal.
      await comesToRest(redis, deadline, signal);
      await redis.bgrewriteaof();
      const isDone = await comesToRest(redis, deadline, signal);
      const done = isDone ? 'Redis rewrote its append-only file without the removed data' : 'Redis is still rewriting its append-only file';
      return [done, SNAPSHOT];
    } catch (error) {
      signal.throwIfAborted();
      if (isConnectionError(error)) throw error;
      return [`Redis refused to rewrite its append-only file, which may still hold removed data: ${(error as Error).message}`, SNAPSHOT];
    }
  }

  async #pass(erased: Erased, signal: AbortSignal): Promise<{ done: CountsByPlace; left: number }> {
    const done: Record<string, number> = {};
    let left = 0;
    for await (const [place, page] of tracesOf(erased)) {
      signal.throwIfAborted();
      const removed = (await Promise.all(page.map((remove) => remove()))).filter((answer) => answer !== false).length;
      add(done, place, removed);
      left += page.length - removed;
    }
    return { done, left };
  }

  /** `running`: ids of the subject's tasks that have not ended, or are being learned from. */
  async #erased(tenant: string, subject: ErasureSubject, at: number): Promise<Erased & { readonly running: readonly string[] }> {
    const { producer, options } = this;
    const tasks = (await Array.fromAsync(ownedTasks({ producer, tenant, subject, at }))).flat();
    const running = tasks.filter(({ isOver }) => !isOver).map(({ id }) => id);
    return { producer, tenant, subject, at, taskIds: new Set(tasks.map(({ id }) => id)), running, skillIsGone: options.skillIsGone };
  }

  /** Cancels the running tasks and learning, and the executions of all of the subject's tasks; for a whole tenant, all executions. */
  async #stop({ tenant, subject, taskIds }: Erased, running: readonly string[]): Promise<void> {
    const tasks = new TaskStore(this.producer);
    for (const id of running) await tasks.requestCancel(tenant, id);
    if (taskIds.size === 0 && !('all' in subject)) return;
    const { redis, keys } = this.producer;
    const store = new ExecutionStore(redis, keys);
    const start = keys.execution(tenant, '');
    for await (const page of keysStartingWith(redis, start)) {
      const ids = page.map((key) => key.slice(start.length));
      const own = ids.filter((id) => 'all' in subject || taskIds.has(taskOfExecution(id) ?? ''));
      await Promise.all(own.map((id) => store.cancel(tenant, id)));
    }
  }
}

async function* tracesOf(erased: Erased): AsyncGenerator<readonly [place: string, page: readonly Trace[]]> {
  for (const place of PLACES) for await (const page of place.traces(erased)) yield [place.name, page];
}

function add(counts: Record<string, number>, place: string, count: number): void {
  if (count > 0) counts[place] = (counts[place] ?? 0) + count;
}

const SNAPSHOT = 'earlier snapshots (RDB), replicas and backups of Redis hold the removed data until they are replaced';

/** Waits until no rewrite runs or is scheduled. @returns false if the deadline came first */
async function comesToRest(redis: Redis, deadline: number, signal: AbortSignal): Promise<boolean> {
  while (/aof_rewrite_(in_progress|scheduled):1/.test(await redis.info('persistence'))) {
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS, undefined, { signal });
  }
  return true;
}
