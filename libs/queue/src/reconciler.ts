import { errorCode } from '@etude/contracts/errors';
import { QUEUES } from '@etude/contracts/queues';
import { WantedSkills } from './agents/wanted-skills.js';
import { type DurableWork, reconcileWork } from './jobs/durable-work.js';
import type { Producer } from './jobs/producer.js';
import { ConsolidationStore } from './memory/consolidation-store.js';
import { memoryWrites } from './memory/memory-outbox.js';
import { UpkeepStore } from './memory/upkeep-store.js';
import { isConnectionError, type QueueLogger } from './redis/redis.js';
import type { TaskStore } from './tasks/task-store.js';

export interface ReconcilerOptions {
  readonly producer: Producer;
  readonly tasks: TaskStore;
  readonly intervalMs: number;
  /** How long dead letters are kept, in ms. Absent: until they are redriven. */
  readonly deadKeptMs?: number | undefined;
  readonly logger?: QueueLogger;
}

export interface Reconciler {
  /** Runs one pass. @returns how many gaps it closed */
  runOnce(): Promise<number>;
  close(): Promise<void>;
}

/** Every kind of durable work. Add a new kind here. */
function allWorks(producer: Producer, tasks: TaskStore): readonly DurableWork[] {
  const upkeep = new UpkeepStore(producer);
  return [
    tasks.work,
    tasks.learning,
    memoryWrites(producer),
    new ConsolidationStore(producer).work,
    upkeep.erasures,
    upkeep.reembeddings,
    new WantedSkills(producer).work,
  ];
}

const CLEANING_MS = 3_600_000;
const CLEANED_AT_ONCE = 10_000;

/** Removes old dead letters of every queue. Returns their number. A memory write that is still in the outbox gets a new job by the next pass. */
async function removeOldDead(producer: Producer, keptMs: number): Promise<number> {
  const removed = await Promise.all(QUEUES.map(({ name }) => producer.queue(name).clean(keptMs, CLEANED_AT_ONCE, 'failed')));
  return removed.flat().length;
}

/**
 * Closes the gaps that a crash leaves between a record and its job, every `intervalMs`. Any number of reconcilers may run. A pass
 * with nothing to do costs one read for each kind of work.
 */
export function startReconciler({ producer, tasks, intervalMs, deadKeptMs, logger }: ReconcilerOptions): Reconciler {
  const works = allWorks(producer, tasks);
  let pass: Promise<number> | null = null;
  let cleanAt = 0;
  const runOnce = async () => {
    const [seconds, micros] = await producer.redis.time();
    const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
    let total = 0;
    for (const work of works) {
      const closed = await reconcileWork(producer, work, now, (error, entry) => {
        if (isUnavailable(error)) throw error;
        const details = { work: work.name, entry, error: (error as Error).message };
        logger?.error(details, 'an entry could not be reconciled and is retried later; the pass continues');
      });
      if (closed > 0) logger?.info({ work: work.name, closed }, 'added missing jobs or settled records of dead jobs');
      total += closed;
    }
    if (deadKeptMs !== undefined && now >= cleanAt) {
      cleanAt = now + CLEANING_MS;
      const removed = await removeOldDead(producer, deadKeptMs);
      if (removed > 0) logger?.info({ removed }, 'removed dead letters that are older than their retention');
    }
    return total;
  };
  const tick = async () => {
    try {
      await (pass ??= runOnce());
    } catch (error) {
      if (!isUnavailable(error)) logger?.error({ error: (error as Error).message }, 'reconciling failed; the next pass retries');
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

const isUnavailable = (error: unknown) => isConnectionError(error) || errorCode(error) === 'QUEUE_UNAVAILABLE';
