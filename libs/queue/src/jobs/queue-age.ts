import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';

/** Ten urgencies, each with its oldest job first. */
const URGENCIES = 10;
const URGENCY_STEP = 0x1_0000_0000;

/** Age of the job that has waited longest, those with a priority included. 0 where none waits. */
export async function oldestWaitingMs(redis: Redis, queue: Queue, nowMs = Date.now()): Promise<number> {
  const firsts = Array.from({ length: URGENCIES }, (_, i) =>
    redis.zrangebyscore(queue.toKey('prioritized'), (i + 1) * URGENCY_STEP, `(${(i + 2) * URGENCY_STEP}`, 'LIMIT', 0, 1),
  );
  const ids = [redis.lrange(queue.toKey('wait'), -1, -1), ...firsts];
  const jobs = (await Promise.all((await Promise.all(ids)).flat().map((id) => queue.getJob(id)))) as Array<Job | undefined>;
  const oldest = Math.min(nowMs, ...jobs.filter((job) => job !== undefined).map(({ timestamp }) => timestamp));
  return nowMs - oldest;
}
