import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { isConnectionError } from '../redis/redis.js';

const POLL_MS = 100;
const SNAPSHOT = 'a snapshot (RDB) that Redis saved before, and replicas and backups of it, hold what was removed until they are replaced';

/**
 * Redis appends every command to a file, and what was removed stays there until the file is written anew. Has that done, and waits for
 * its end for a bounded time.
 *
 * @returns what was done or could not be, a sentence each: a managed Redis may refuse
 */
export async function rewriteAppendOnlyFile(
  redis: Redis,
  { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  try {
    if ((await persistence(redis)).get('aof_enabled') === '0') return ['Redis keeps no append-only file', SNAPSHOT];
    const deadline = performance.now() + waitMs;
    // One that goes on already may have begun before the removal.
    await comesToRest(redis, deadline, signal);
    await redis.bgrewriteaof();
    if (await comesToRest(redis, deadline, signal)) {
      const isOk = (await persistence(redis)).get('aof_last_bgrewrite_status') === 'ok';
      return [isOk ? 'Redis wrote its append-only file anew, without what was removed' : FAILED, SNAPSHOT];
    }
    return [`Redis was still writing its append-only file anew after ${Math.round(waitMs / 1_000)} s, and goes on by itself`, SNAPSHOT];
  } catch (error) {
    signal.throwIfAborted();
    if (isConnectionError(error)) throw error;
    return [`Redis refused to write its append-only file anew, so it may hold what was removed: ${(error as Error).message}`, SNAPSHOT];
  }
}

const FAILED = 'Redis failed to write its append-only file anew, so it may hold what was removed; see its log, then run BGREWRITEAOF';

/** Whether no rewrite goes on or is to come. */
async function comesToRest(redis: Redis, deadline: number, signal: AbortSignal): Promise<boolean> {
  for (;;) {
    const facts = await persistence(redis);
    if (facts.get('aof_rewrite_in_progress') !== '1' && facts.get('aof_rewrite_scheduled') !== '1') return true;
    if (performance.now() > deadline) return false;
    await sleep(POLL_MS, undefined, { signal });
  }
}

async function persistence(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const lines = (await redis.info('persistence')).split('\r\n').map((line) => line.split(':', 2));
  return new Map(lines.map(([name = '', value = '']) => [name, value]));
}
