import { Queue, QueueEvents, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { repeat, spread } from './figures.js';

/** Durations in ms of n writes as large as a step: HSET and XADD in one MULTI, with the durability that the server has. */
export async function bareWrites(url: string, n: number, value: string): Promise<number[]> {
  const redis = new Redis(url);
  try {
    return await repeat(n, (i) =>
      redis.multi().hset('bench:bare:journal', `k${i}`, value).xadd('bench:bare:events', '*', 'event', '{}').exec(),
    );
  } finally {
    await redis.del('bench:bare:journal', 'bench:bare:events');
    await redis.quit();
  }
}

/** Jobs per second that a bare BullMQ worker finishes, counted from the first add to the last completion seen by the caller. */
export async function bareJobsPerSecond(url: string, n: number, concurrency: number, payload: object): Promise<number> {
  const connection = { url, maxRetriesPerRequest: null };
  const queue = new Queue('bench.bare', { connection }).setMaxListeners(2 * concurrency);
  const events = new QueueEvents('bench.bare', { connection }).setMaxListeners(2 * concurrency);
  const worker = new Worker('bench.bare', async () => ({ outcome: 'succeeded' }), { connection, concurrency });
  try {
    await Promise.all([events.waitUntilReady(), worker.waitUntilReady()]);
    const elapsedMs = await spread(n, concurrency, async () => {
      const job = await queue.add('job', payload, { removeOnComplete: 1_000 });
      await job.waitUntilFinished(events, 30_000);
    });
    return n / (elapsedMs / 1_000);
  } finally {
    await worker.close();
    await events.close();
    await queue.obliterate({ force: true });
    await queue.close();
  }
}
