import { ConsolidationRunJob, MemoryUpkeepJob } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { redisForFile, startConsumer, startProducer } from '../../test/rig.js';
import { ConsolidationStore } from '../memory/consolidation-store.js';
import { keptSchedules, schedule, unschedule } from './scheduler.js';

const file = redisForFile();
const ASK = { agent: null, days: 7, dryRun: false };

describe('nightly schedule', () => {
  it('fires runs with an id of their own', async () => {
    const prefix = file.prefix();
    const { producer } = startProducer(file.server.url, prefix);
    const runs: string[] = [];
    startConsumer(
      ConsolidationRunJob,
      async ({ runId, tenant, days }) => {
        runs.push(`${tenant} ${runId} ${days}`);
        return { runId };
      },
      { redisUrl: file.server.url, prefix, concurrency: 1 },
    );
    await schedule(producer, 'nightly', 'acme', { pattern: '* * * * * *', timeZone: 'Europe/Berlin', days: 3 });
    await until(() => runs.length >= 2);
    expect(new Set(runs).size).toBe(runs.length);
    for (const run of runs) expect(run).toMatch(/^acme nightly-all-\d{14} 3$/);
  });

  it('is one however often it is set, in the time zone given', async () => {
    const { producer } = startProducer(file.server.url, file.prefix());
    const queue = producer.queue(ConsolidationRunJob.name);
    for (const pattern of ['0 2 * * *', '0 3 * * *', '0 3 * * *'])
      await schedule(producer, 'nightly', 'acme', { pattern, timeZone: 'Asia/Tokyo', days: 7 });
    const schedulers = await queue.getJobSchedulers();
    expect(schedulers).toMatchObject([{ pattern: '0 3 * * *', tz: 'Asia/Tokyo' }]);
    expect(new Date(schedulers[0]?.next ?? 0).getUTCHours()).toBe(18);
    await unschedule(producer, 'nightly', 'acme');
    expect(await queue.getJobSchedulers()).toEqual([]);
  });

  it('leaves what is due where the same is set again, and puts it off where the time is another', async () => {
    const { producer } = startProducer(file.server.url, file.prefix());
    const queue = producer.queue(ConsolidationRunJob.name);
    const times = { pattern: '* * * * * *', timeZone: 'UTC', days: 7 };
    await schedule(producer, 'nightly', 'acme', times);
    const [due] = await queue.getDelayed();
    await until(() => Date.now() > (due?.timestamp ?? 0) + (due?.delay ?? 0));
    await schedule(producer, 'nightly', 'acme', times);
    expect((await queue.getDelayed()).map(({ id }) => id)).toEqual([due?.id]);
    await schedule(producer, 'nightly', 'acme', { ...times, days: 3 });
    expect(await queue.getDelayed()).toMatchObject([{ data: { days: 3 } }]);
    expect((await queue.getDelayed()).map(({ id }) => id)).not.toEqual([due?.id]);
  });

  it('is known by its tenant, whatever it is of, until it is taken away', async () => {
    const { producer } = startProducer(file.server.url, file.prefix());
    const times = { pattern: '0 3 * * *', timeZone: 'UTC' };
    const tenants = async () => (await keptSchedules(producer)).map(({ tenant }) => tenant).toSorted();
    expect(await tenants()).toEqual([]);
    await schedule(producer, 'nightly', 'acme', { ...times, days: 7 });
    await schedule(producer, 'archive', 'globex', { ...times, scoreMax: 0.2, olderThanDays: 30 });
    await schedule(producer, 'prune', 'acme', { ...times, unusedDays: 9, failingRateMax: 0, failingUsesMin: 5, supersededDays: 0 });
    expect(await tenants()).toEqual(['acme', 'acme', 'globex']);
    expect([await unschedule(producer, 'nightly', 'acme'), await unschedule(producer, 'nightly', 'acme')]).toEqual([true, false]);
    expect(await tenants()).toEqual(['acme', 'globex']);
    expect([await unschedule(producer, 'prune', 'acme'), await unschedule(producer, 'archive', 'globex')]).toEqual([true, true]);
    expect(await tenants()).toEqual([]);
  });

  it('fires prunings with what the schedule says, each by an id of its own', async () => {
    const prefix = file.prefix();
    const { producer } = startProducer(file.server.url, prefix);
    const fired: string[] = [];
    startConsumer(
      MemoryUpkeepJob,
      async (payload) => {
        if (payload.work === 'prune') fired.push(`${payload.tenant} ${payload.id} ${payload.unusedDays}`);
        return {};
      },
      { redisUrl: file.server.url, prefix, concurrency: 1 },
    );
    const limits = { unusedDays: 90, failingRateMax: 0.5, failingUsesMin: 5, supersededDays: 0 };
    await schedule(producer, 'prune', 'acme', { pattern: '* * * * * *', timeZone: 'UTC', ...limits });
    await until(() => fired.length >= 2);
    expect(new Set(fired).size).toBe(fired.length);
    for (const one of fired) expect(one).toMatch(/^acme nightly-acme-\d+ 90$/);
    await expect(
      schedule(producer, 'prune', 'acme', { pattern: '0 3 * * *', timeZone: 'UTC', ...limits, failingRateMax: 2 }),
    ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('refuses a pattern or a time zone that is none', async () => {
    const { producer } = startProducer(file.server.url, file.prefix());
    await expect(schedule(producer, 'nightly', 'acme', { pattern: 'at night', timeZone: 'UTC', days: 7 })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    await expect(schedule(producer, 'nightly', 'acme', { pattern: '0 3 * * *', timeZone: 'Moon/Base', days: 7 })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });
});

describe('consolidation records', () => {
  it('makes one run of one request', async () => {
    const { producer } = startProducer(file.server.url, file.prefix());
    const store = new ConsolidationStore(producer);
    const first = await store.create('acme', ASK, 'r1');
    expect(first).toMatchObject({ created: true, record: { state: 'queued', tenant: 'acme', days: 7 } });
    expect(await store.create('acme', ASK, 'r1')).toEqual({ created: false, record: first.record });
    await expect(store.create('acme', { ...ASK, days: 8 }, 'r1')).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    expect((await store.create('acme', ASK, '')).record.id).not.toBe(first.record.id);
  });

  it('keeps a record until its retention after the end is over', async () => {
    const { redis, keys, producer } = startProducer(file.server.url, file.prefix());
    const store = new ConsolidationStore(producer, { retentionMs: 60_000 });
    const { record } = await store.create('acme', ASK, '');
    await store.put({ ...record, state: 'running', groups: 2 });
    expect([await store.get('acme', record.id), await redis.pttl(keys.consolidation('acme', record.id))]).toMatchObject([
      { groups: 2 },
      -1,
    ]);
    await store.put({ ...record, state: 'done' });
    expect(await redis.pttl(keys.consolidation('acme', record.id))).toBeGreaterThan(50_000);
    expect(await store.get('other', record.id)).toBeNull();
  });
});
