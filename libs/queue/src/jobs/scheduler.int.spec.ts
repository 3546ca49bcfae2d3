import { ConsolidationRunJob, MemoryUpkeepJob } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { describe, expect, it, vi } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { ConsolidationStore } from '../memory/consolidation-store.js';
import { RETENTION_MS } from '../redis/keys.js';
import { NightlySchedules, schedule, type ScheduleParts } from './scheduler.js';

const startQueue = queueForFile();
const ASK = { agent: null, days: 7, dryRun: false };

describe('nightly schedule', () => {
  it('fires runs with an id of their own', async () => {
    const { producer, startConsumer } = startQueue();
    const runs: string[] = [];
    startConsumer(ConsolidationRunJob, async ({ runId, tenant, days }) => {
      runs.push(`${tenant} ${runId} ${days}`);
      return { runId };
    });
    await schedule(producer, 'nightly', 'acme', { pattern: '0 3 * * *', timeZone: 'Europe/Berlin', days: 3 });
    for (const fired of [1, 2]) {
      const due = await until(async () => (await producer.queue(ConsolidationRunJob.name).getDelayed())[0]);
      await due.promote();
      await until(() => runs.length === fired);
    }
    expect(new Set(runs).size).toBe(2);
    for (const run of runs) expect(run).toMatch(/^acme nightly-all-\d{14} 3$/);
  });

  it('keeps a due firing when the schedule is unchanged, and replaces it when the schedule changes', async () => {
    const { producer } = startQueue();
    const queue = producer.queue(ConsolidationRunJob.name);
    const times = { pattern: '* * * * * *', timeZone: 'UTC', days: 7 };
    await schedule(producer, 'nightly', 'acme', times);
    const due = await until(async () => (await queue.getDelayed())[0]);
    await until(() => Date.now() > due.timestamp + due.delay);
    await schedule(producer, 'nightly', 'acme', times);
    expect((await queue.getDelayed()).map(({ id }) => id)).toEqual([due.id]);
    await schedule(producer, 'nightly', 'acme', { ...times, days: 3 });
    expect(await queue.getDelayed()).toMatchObject([{ data: { days: 3 } }]);
    expect((await queue.getDelayed()).map(({ id }) => id)).not.toEqual([due.id]);
  });

  it.each([
    ['a pattern', { pattern: 'at night', timeZone: 'UTC', days: 7 }, 'at'],
    ['a time zone', { pattern: '0 3 * * *', timeZone: 'Moon/Base', days: 7 }, 'CronDate'],
    ['a limit', { pattern: '0 3 * * *', timeZone: 'UTC', days: -1 }, 'days'],
  ])('refuses %s that cannot be read', async (_what, times, message) => {
    await expect(schedule(startQueue().producer, 'nightly', 'acme', times)).rejects.toThrow(message);
  });
});

const NIGHTLY = { pattern: '0 3 * * *', timeZone: 'UTC' };
const ALL = {
  nightly: { ...NIGHTLY, days: 7 },
  archive: { ...NIGHTLY, scoreMax: 0.2, olderThanDays: 30 },
  prune: { ...NIGHTLY, unusedDays: 90, failingRateMax: 0, failingUsesMin: 5, supersededDays: 0 },
};
const NONE = { nightly: null, archive: null, prune: null };

function start() {
  const { producer } = startQueue();
  const clock = { time: 0, now: () => clock.time };
  const info = vi.fn();
  const logger = { info, warn: vi.fn(), error: vi.fn() };
  const worker = (schedules: ScheduleParts['schedules']) => new NightlySchedules({ producer, logger, clock, schedules });
  /** Keys and patterns of all schedules, sorted. */
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
    await producer.queue(ConsolidationRunJob.name).removeJobScheduler('nightly.acme.all');
    clock.time += 3_599_999;
    await schedules.ensure('acme');
    expect(await fires()).toEqual([]);
    clock.time += 1;
    await schedules.ensure('acme');
    expect(await fires()).toEqual(['nightly.acme.all 0 3 * * *']);
  });
});

describe('consolidation records', () => {
  it('keeps a record for its retention after the end', async () => {
    const { redis, keys, producer } = startQueue();
    const store = new ConsolidationStore(producer);
    const record = await store.create('acme', ASK, '');
    await store.put({ ...record, state: 'running', groups: 2 });
    expect([await store.get('acme', record.id), await redis.pttl(keys.consolidation('acme', record.id))]).toMatchObject([
      { groups: 2 },
      -1,
    ]);
    await store.put({ ...record, state: 'done' });
    expect(await redis.pttl(keys.consolidation('acme', record.id))).toBeGreaterThan(RETENTION_MS - 60_000);
    expect(await store.get('other', record.id)).toBeNull();
  });

  it('are listed per tenant, newest first, nightly ones among them, as long as they are kept', async () => {
    const { redis, keys, producer } = startQueue();
    const store = new ConsolidationStore(producer);
    const first = await store.create('acme', ASK, '');
    const nightly = { ...first, id: 'nightly-all-2026-01-02', createdAt: first.createdAt + 1, state: 'done' as const };
    await store.put(nightly);
    await store.create('other', ASK, '');
    const listed = async (after?: string) => {
      const { items, nextAfter } = await store.list('acme', { pageSize: 1, ...(after ? { after } : {}) });
      return { ids: items.map(({ id }) => id), nextAfter };
    };
    const page = await listed();
    expect(page.ids).toEqual([nightly.id]);
    expect((await listed(page.nextAfter!)).ids).toEqual([first.id]);
    await redis.del(keys.consolidation('acme', nightly.id));
    expect((await listed()).ids).toEqual([first.id]);
  });
});
