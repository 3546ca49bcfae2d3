import { ConsolidationRunJob, MemoryUpkeepJob } from '@etude/contracts/queues';
import { Producer } from '@etude/queue/jobs/producer';
import { unschedule } from '@etude/queue/jobs/scheduler';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { NightlySchedules, type ScheduleParts } from './nightly-schedules.js';

const redis = redisForFile();

const NIGHTLY = { pattern: '0 3 * * *', timeZone: 'UTC' };
const ALL = {
  nightly: { ...NIGHTLY, days: 7 },
  archive: { ...NIGHTLY, scoreMax: 0.2, olderThanDays: 30 },
  prune: { ...NIGHTLY, unusedDays: 90, failingRateMax: 0, failingUsesMin: 5, supersededDays: 0 },
};
const NONE = { nightly: null, archive: null, prune: null };

function start() {
  const producer = new Producer(redis.url, redis.prefix());
  onTestFinished(() => producer.close());
  const clock = { time: 0, now: () => clock.time };
  const info = vi.fn();
  const logger = { info, warn: vi.fn(), error: vi.fn() };
  const worker = (schedules: ScheduleParts['schedules']) => new NightlySchedules({ producer, logger, clock, schedules });
  /** The schedules, in order. */
  const fires = async () => {
    const queues = [ConsolidationRunJob, MemoryUpkeepJob].map(({ name }) => producer.queue(name));
    const all = (await Promise.all(queues.map((queue) => queue.getJobSchedulers()))).flat();
    return all.map(({ key, pattern }) => `${key} ${pattern}`).toSorted();
  };
  return { producer, clock, info, worker, fires };
}

describe('NightlySchedules', () => {
  it('updates the schedules of all tenants when a worker starts', async () => {
    const { worker, fires } = start();
    const before = worker(ALL);
    await before.ensure('acme');
    await before.ensure('globex');
    await worker({ ...NONE, nightly: { ...ALL.nightly, pattern: '0 4 * * *' } }).renew();
    expect(await fires()).toEqual(['nightly.acme.all 0 4 * * *', 'nightly.globex.all 0 4 * * *']);
    await worker(NONE).renew();
    expect(await fires()).toEqual([]);
  });

  it('sets a removed schedule again within an hour when its tenant writes', async () => {
    const { producer, clock, worker, fires } = start();
    const schedules = worker({ ...NONE, nightly: ALL.nightly });
    await schedules.ensure('acme');
    await unschedule(producer, 'nightly', 'acme');
    clock.time += 3_599_999;
    await schedules.ensure('acme');
    expect(await fires()).toEqual([]);
    clock.time += 1;
    await schedules.ensure('acme');
    expect(await fires()).toEqual(['nightly.acme.all 0 3 * * *']);
  });
});
