import { RolloutRun } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { expect, it } from 'vitest';
import { queueForFile, SOLVED, SPEC } from '../../test/rig.js';
import { openJournal } from './journal.js';
import { RolloutPlaces } from './rollout-places.js';

const startQueue = queueForFile();

/** A worker with two places and an extra one, whose rollouts run until the test ends them. */
async function start() {
  const { producer, tasks, redis, keys, startConsumer } = startQueue();
  const places = await RolloutPlaces.open(redis, keys, 2);
  const started: string[] = [];
  const ends: Array<() => void> = [];
  const work = () =>
    startConsumer(
      RolloutRun,
      async ({ tenant, taskId, rolloutId }, { signal }) => {
        const journal = await openJournal(redis, keys, { tenant, taskId, rolloutId });
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        ends.push(resolve);
        started.push(tenant);
        await promise;
        await journal?.finish({ ...SOLVED, usage: journal.usage });
        return { outcome: 'succeeded' as const };
      },
      { concurrency: places.jobsMax, admit: places.admit },
    );
  const queue = producer.queue(RolloutRun.name);
  const submit = async (tenant: string) => (await tasks.submit(tenant, SPEC, '')).record.id;
  return { work, submit, started, ends, queue, isHeld: () => until(async () => (await queue.getActiveCount()) === 3) };
}

it('keeps a place for a tenant without running tasks while another has all others', async () => {
  const { work, submit, started, ends, isHeld } = await start();
  for (let i = 0; i < 6; i++) await submit('loud');
  work();
  await until(() => started.length === 2);
  await isHeld();
  await submit('quiet');
  await until(() => started.length === 3);
  expect(started).toEqual(['loud', 'loud', 'quiet']);
  // Three tasks run. A tenant with running tasks gets a place only after two of the three have ended.
  await submit('quiet');
  for (const end of ends) end();
  await until(() => started.length === 5);
  expect(started.slice(3).toSorted()).toEqual(['loud', 'quiet']);
});

it('starts a held task when a place becomes free', async () => {
  const { work, submit, started, ends, isHeld } = await start();
  for (let i = 0; i < 3; i++) await submit('loud');
  work();
  await until(() => started.length === 2);
  await isHeld();
  ends[0]?.();
  await until(() => started.length === 3);
  expect(started).toEqual(['loud', 'loud', 'loud']);
});

it('returns a held task to the queue at shutdown, without counting an attempt', async () => {
  const { work, submit, started, queue, isHeld } = await start();
  const ids = [await submit('loud'), await submit('loud'), await submit('loud')];
  const consumer = work();
  await until(() => started.length === 2);
  await isHeld();
  await consumer.close(2_000);
  const jobs = await Promise.all(ids.map((id) => queue.getJob(`${id}-r1`)));
  expect(await queue.getJobCounts('prioritized', 'active')).toEqual({ prioritized: 3, active: 0 });
  expect(jobs.map((job) => job?.attemptsMade)).toEqual([0, 0, 0]);
});
