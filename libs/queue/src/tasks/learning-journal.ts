import { EtudeError } from '@etude/contracts/errors';
import type { LearningJournal } from '@etude/domain/ports/journal';
import type { Redis } from 'ioredis';
import { memberOf, type RedisKeys, type RolloutAddress, taskKeys } from '../redis/keys.js';
import { runScript } from '../redis/redis.js';
import { readEntries } from './journal.js';

/**
 * Takes the learning of an ended rollout for this worker: raises its epoch and loads the journal.
 *
 * @returns null where no learning is pending
 */
export async function openLearning(redis: Redis, keys: RedisKeys, rollout: RolloutAddress): Promise<LearningJournal | null> {
  const { tenant, taskId, rolloutId } = rollout;
  const places = taskKeys(keys, rollout);
  const [member, wake] = [memberOf(tenant, rolloutId), keys.wake(tenant, taskId)];
  const opening = await runScript<[string, string, string[]] | []>(redis, 'openLearning', places, [member]);
  if (opening.length === 0) return null;
  const [epoch, startedAt, flat] = opening;
  const write = async (script: string, args: readonly string[]) => {
    if ((await runScript<number>(redis, script, places, [member, wake, epoch, ...args])) === 1) return;
    const message = `learning from rollout ${rolloutId} was refused: epoch ${epoch} is over, another worker holds it or it has ended; stop and write nothing`;
    throw new EtudeError('JOURNAL_FENCED', message);
  };
  return {
    rolloutId,
    epoch: Number(epoch),
    startedAt: Number(startedAt),
    entries: readEntries(flat),
    async append({ key, value, usage }) {
      await write('appendLearning', [key, JSON.stringify({ value: value ?? null, usage }), JSON.stringify(usage)]);
      return { cancelRequested: false };
    },
    finish: ({ state, error }) => write('endLearning', [state, error === null ? '' : JSON.stringify(error)]),
  };
}
