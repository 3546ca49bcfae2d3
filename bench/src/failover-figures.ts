import { setTimeout as sleep } from 'node:timers/promises';
import { TaskSpec } from '@etude/contracts/task';
import { Producer } from '@etude/queue/jobs/producer';
import { TaskStore } from '@etude/queue/tasks/task-store';
import { RedisGroup } from '@etude/test-support/redis-group';
import { Redis } from 'ioredis';
import { percentile, round } from './figures.js';

const EVERY_MS = 20;

/** Milliseconds until `write` succeeds for the first time. */
async function firstSuccess(write: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  while (
    !(await write()
      .then(() => true)
      .catch(() => false))
  )
    await sleep(EVERY_MS);
  return performance.now() - from;
}

/** Time from the death of Redis' primary until a task is accepted again, and until a bare client's SET succeeds. */
async function gaps(): Promise<readonly [tasks: number, bare: number]> {
  const group = new RedisGroup();
  const { primary, sentinels, url } = await group.watched();
  const producer = new Producer(url, 'etude');
  const bare = new Redis({
    sentinels: sentinels.map((port) => ({ host: '127.0.0.1', port })),
    name: 'mymaster',
    maxRetriesPerRequest: 0,
    sentinelRetryStrategy: () => EVERY_MS,
    retryStrategy: () => EVERY_MS,
  });
  bare.on('error', () => undefined);
  try {
    const tasks = new TaskStore(producer);
    const spec = TaskSpec.parse({ prompt: 'Print 3.' });
    await Promise.all([tasks.submit('acme', spec, 'before'), bare.set('before', 1)]);
    await primary.process.kill();
    return await Promise.all([firstSuccess(() => tasks.submit('acme', spec, 'after')), firstSuccess(() => bare.set('after', 1))]);
  } finally {
    bare.disconnect();
    await producer.close();
    await group.stop();
  }
}

export async function failoverFigures(rounds: number): Promise<Record<string, number>> {
  const measured: Array<readonly [number, number]> = [];
  for (let i = 0; i < rounds; i++) measured.push(await gaps());
  const [tasks, bare] = [0, 1].map((which) =>
    percentile(
      measured.map((gap) => gap[which]!),
      50,
    ),
  ) as [number, number];
  return { failover_gap_p50_ms: round(tasks, 0), failover_bare_p50_ms: round(bare, 0), failover_gap_over_bare: round(tasks / bare) };
}
