import type { Redis } from 'ioredis';
import { whileRedisAnswers } from './redis.js';
import type { ScriptName } from './scripts.js';

/**
 * Runs one script; the shape of its answer is in the script's comment.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE; see `whileRedisAnswers`
 */
export async function runScript<Answer>(
  redis: Redis,
  name: ScriptName,
  keys: readonly string[],
  args: ReadonlyArray<string | number>,
): Promise<Answer> {
  const commands = redis as unknown as Record<ScriptName, (...parts: Array<string | number>) => Promise<Answer>>;
  return whileRedisAnswers(redis, commands[name](...keys, ...args));
}
