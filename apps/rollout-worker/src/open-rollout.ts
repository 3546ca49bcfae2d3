import { EtudeError } from '@etude/contracts/errors';
import { isFinal, type TaskRecord } from '@etude/contracts/task';
import { openJournal, type RedisJournal } from '@etude/queue/tasks/journal';
import type { RedisKeys } from '@etude/queue/redis/keys';
import type { connectRedis } from '@etude/queue/redis/redis';
import type { TaskStore } from '@etude/queue/tasks/task-store';

export interface JournalSource {
  /** Waits for Redis where it is away: a step that was done has to be written. */
  readonly redis: ReturnType<typeof connectRedis>;
  readonly keys: RedisKeys;
}

interface RolloutAddress {
  readonly tenant: string;
  readonly taskId: string;
  readonly rolloutId: string;
}

export interface OpenedRollout {
  readonly task: TaskRecord;
  readonly journal: RedisJournal;
}

/** A rollout that has been taken this often takes its workers down with it. */
const EPOCHS_MAX = 20;

/**
 * Takes the rollout for this worker, or says how it ended before.
 *
 * @throws EtudeError WORKER_LOST, after the task was marked failed with it
 */
export async function openRollout(
  address: RolloutAddress,
  tasks: TaskStore,
  { redis, keys }: JournalSource,
): Promise<OpenedRollout | { outcome: 'succeeded' | 'failed' | 'cancelled' | 'fenced' }> {
  const [journal, task] = await Promise.all([openJournal(redis, keys, address), tasks.get(address.tenant, address.taskId)]);
  if (journal === null || task === null) return { outcome: await outcomeOf(address, tasks) };
  if (journal.epoch > EPOCHS_MAX) throw await giveUp(journal);
  return { task, journal };
}

async function outcomeOf({ tenant, taskId }: RolloutAddress, tasks: TaskStore): Promise<'succeeded' | 'failed' | 'cancelled' | 'fenced'> {
  const state = (await tasks.get(tenant, taskId))?.state;
  return state && isFinal(state) ? state : 'fenced';
}

async function giveUp(journal: RedisJournal): Promise<EtudeError> {
  const message = `Rollout ${journal.rolloutId} was taken ${journal.epoch} times without coming to an end; look for what ends its workers, then redrive its job.`;
  await journal.finish(
    { state: 'failed', stopReason: 'error', result: null, usage: journal.usage, error: { code: 'WORKER_LOST', message } },
    [],
  );
  return new EtudeError('WORKER_LOST', message);
}
