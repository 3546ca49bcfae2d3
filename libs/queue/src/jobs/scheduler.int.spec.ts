import { ConsolidationRunJob } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { startProducer } from '../../test/rig.js';
import { ConsolidationStore } from '../memory/consolidation-store.js';
import { schedule } from './scheduler.js';

const file = redisForFile();
const ASK = { agent: null, days: 7, dryRun: false };

describe('nightly schedule', () => {
  it('keeps a due firing when the schedule is unchanged, and replaces it when the schedule changes', async () => {
    const { producer } = startProducer(file.url, file.prefix());
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
});

describe('consolidation records', () => {
  it('keeps a record for its retention after the end', async () => {
    const { redis, keys, producer } = startProducer(file.url, file.prefix());
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
