import { rolloutIdOf } from '@etude/contracts/ids';
import { RolloutRun } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { queueForFile, SPEC } from '../../test/rig.js';
import { DeadLetters } from '../jobs/dead-letters.js';
import { startReconciler } from '../reconciler.js';
import { limitsFrom, tagsApart, tenantLimitsConfig } from '../limits/tenant-limits.js';
import { openJournal } from './journal.js';
import { TaskStore } from './task-store.js';

const startQueue = queueForFile();

function start(limits: object = {}) {
  const rig = startQueue();
  const { producer, redis, keys } = rig;
  const limitsOf = limitsFrom(tenantLimitsConfig.parse({ ETUDE_TENANT_LIMITS: JSON.stringify(limits) }));
  const tasks = new TaskStore(producer, {}, limitsOf);
  const queue = producer.queue(RolloutRun.name);
  const submit = async (tenant: string, priority = 0) => (await tasks.submit(tenant, { ...SPEC, priority }, '')).record.id;
  const inLine = async () => (await redis.zrange(queue.toKey('prioritized'), '0', '-1')).map((id) => id.replace(/-r1$/, ''));
  /** Starts the first task of the line, as a worker does. @returns the task's id */
  const take = async (tenantOf: (id: string) => string) => {
    const [rolloutId = ''] = await redis.zpopmin(queue.toKey('prioritized'));
    const taskId = rolloutId.replace(/-r1$/, '');
    await openJournal(redis, keys, { tenant: tenantOf(taskId), taskId, rolloutId });
    return taskId;
  };
  return { ...rig, tasks, queue, submit, inLine, take, limitsOf };
}

describe('the line of tasks', () => {
  it('starts the new task of a quiet tenant among the next two, before 1,000 of a loud one', async () => {
    const { submit, redis, keys, startConsumer } = start();
    const loud = await Promise.all(Array.from({ length: 1_000 }, () => submit('loud')));
    const started: string[] = [];
    const quietAt = Promise.withResolvers<number>();
    startConsumer(RolloutRun, async ({ tenant, taskId, rolloutId }) => {
      await openJournal(redis, keys, { tenant, taskId, rolloutId });
      started.push(tenant);
      if (started.length === 20) {
        await submit('quiet');
        quietAt.resolve(started.length);
      }
      return { outcome: 'waiting' as const };
    });
    const at = await quietAt.promise;
    await until(() => started.includes('quiet'));
    expect(started.indexOf('quiet')).toBeLessThanOrEqual(at + 1);
    expect(loud).toHaveLength(1_000);
  });

  it('lets no tenant start more than its weight allows between two tasks of another', async () => {
    const weights = fc.constantFrom(1, 2, 4, 5, 10, 20, 50, 100);
    const moves = fc.array(fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), takes: fc.nat(2) }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.tuple(weights, weights, weights), moves, async ([a, b, c], steps) => {
        const rig = start({ a: { weight: a }, b: { weight: b }, c: { weight: c } });
        const tenants = new Map<string, string>();
        const waiting = new Map(['a', 'b', 'c'].map((tenant) => [tenant, 0]));
        /** For each tenant with waiting tasks: how many tasks of other tenants have started since the tenant's last start. */
        const since = new Map<string, Map<string, number>>();
        const take = async () => {
          const tenant = tenants.get(await rig.take((id) => tenants.get(id) ?? ''));
          if (tenant === undefined) return;
          waiting.set(tenant, waiting.get(tenant)! - 1);
          for (const [own, starts] of since) if (own !== tenant) starts.set(tenant, (starts.get(tenant) ?? 0) + 1);
          for (const [own, starts] of since)
            for (const [other, count] of starts)
              expect(count).toBeLessThanOrEqual(Math.floor(tagsApart(rig.limitsOf(own)) / tagsApart(rig.limitsOf(other))) + 1);
          since.delete(tenant);
          if (waiting.get(tenant)! > 0) since.set(tenant, new Map());
        };
        for (const { tenant, takes } of steps) {
          tenants.set(await rig.submit(tenant), tenant);
          waiting.set(tenant, waiting.get(tenant)! + 1);
          for (let i = 0; i < takes && (await rig.inLine()).length > 0; i++) await take();
        }
        while ((await rig.inLine()).length > 0) await take();
      }),
      { numRuns: 15 },
    );
  });

  it('runs a higher priority first within a tenant, and leaves the places of others', async () => {
    const { submit, inLine } = start();
    const [low, other, second] = [await submit('acme'), await submit('other'), await submit('acme')];
    const [high, mid] = [await submit('acme', 9), await submit('acme', 5)];
    const [o2, o3] = [await submit('other'), await submit('other')];
    expect(await inLine()).toEqual([other, high, mid, o2, low, o3, second]);
  });

  it('gives a tenant its places back when it cancels what waits', async () => {
    const { submit, inLine, tasks, take } = start();
    const first = await submit('loud');
    const ids = await Promise.all(Array.from({ length: 20 }, () => submit('loud')));
    await take(() => 'loud');
    for (const id of [first, ...ids]) await tasks.requestCancel('loud', id);
    const [again, quiet] = [await submit('loud'), await submit('quiet'), await submit('quiet'), await submit('quiet')];
    const order = (await inLine()).filter((id) => !ids.includes(id));
    expect([order[0], order[1] === again || order[2] === again]).toEqual([quiet, true]);
  });

  it('counts places from the task that started last before they run out', async () => {
    const { submit, take, redis, keys, queue, inLine } = start();
    for (const tenant of ['acme', 'other']) await submit(tenant);
    await redis.hset(keys.line, { acme: '1500000', other: '1500100' });
    const [, other] = [await submit('acme'), await submit('other')];
    for (const tenant of ['acme', 'other', 'acme']) await take(() => tenant);
    expect(await redis.hmget(keys.line, '/now', '/base')).toEqual(['1500000', '1500000']);
    expect((await queue.getJob(rolloutIdOf(other)))?.priority).toBe(102);
    const late = await submit('late');
    expect(await inLine()).toEqual([late, other]);
  });

  it('adds a missing job again at its place, and moves one that was added too late', async () => {
    const { submit, producer, tasks, queue, redis, keys } = start();
    const reconciler = startReconciler({ producer, tasks, intervalMs: 3_600_000 });
    onTestFinished(() => reconciler.close());
    const ids = [await submit('acme'), await submit('acme'), await submit('acme')].map((id) => rolloutIdOf(id));
    const places = async () => Promise.all(ids.map(async (id) => (await queue.getJob(id))?.priority));
    expect(await places()).toEqual([1, 102, 202]);
    await (await queue.getJob(ids[1] ?? ''))?.remove();
    await (await queue.getJob(ids[2] ?? ''))?.changePriority({ priority: 900 });
    for (const id of ids) await redis.zadd(keys.rolloutOutbox, 'XX', '1', `acme/${id}`);
    await reconciler.runOnce();
    expect(await places()).toEqual([1, 102, 202]);
  });

  it('tells how long the task waits that waits longest, wherever it is in the line', async () => {
    const { submit, producer, tasks, redis, queue } = start();
    await submit('acme');
    const old = rolloutIdOf(await submit('acme'));
    await redis.hset(queue.toKey(old), 'timestamp', Date.now() - 60_000);
    await redis.zadd(producer.keys.waitingSince, '1', old);
    const [rollouts] = await new DeadLetters(producer, tasks).queues();
    expect(rollouts?.oldestWaitingMs).toBeGreaterThanOrEqual(60_000);
  });
});

describe('limits of a tenant', () => {
  it('refuse a task beside too many unfinished ones until one has ended, but never a repeat', async () => {
    const { tasks, submit } = start({ '*': { tasks: 2 }, big: { tasks: 3 } });
    const { record } = await tasks.submit('acme', SPEC, 'r1');
    await submit('acme');
    await expect(tasks.submit('acme', SPEC, 'r2')).rejects.toMatchObject({
      code: 'TENANT_LIMIT',
      message: expect.stringContaining('2 unfinished tasks') as string,
      details: { retryAfterMs: 5_000, metadata: { limit: 'tasks' } },
    });
    expect(await tasks.submit('acme', SPEC, 'r1')).toMatchObject({ created: false, record: { id: record.id } });
    for (let i = 0; i < 3; i++) await submit('big');
    await tasks.requestCancel('acme', record.id);
    expect((await tasks.submit('acme', SPEC, 'r2')).created).toBe(true);
  });

  it('refuse a submit beyond those of a minute until it is over', async () => {
    const { submit, redis, keys } = start({ acme: { submitsPerMinute: 2 } });
    await submit('acme');
    await submit('acme');
    const refused = await submit('acme').catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'TENANT_LIMIT', details: { metadata: { limit: 'submits' } } });
    const { details } = refused as { details: { retryAfterMs: number } };
    expect(details.retryAfterMs).toBeGreaterThan(50_000);
    expect(await redis.pttl(keys.submits('acme'))).toBeLessThanOrEqual(60_000);
    await redis.del(keys.submits('acme'));
    await submit('acme');
  });

  it('are those of the tenant, then those of all', () => {
    const text = '{"*": {"sandboxes": 9, "tasks": 7}, "acme": {"tasks": 5, "usdPerDay": 1.5}}';
    const limitsOf = limitsFrom(tenantLimitsConfig.parse({ ETUDE_TENANT_LIMITS: text }));
    const all = { weight: 1, tasks: 7, submitsPerMinute: 0, sandboxes: 9, tokensPerDay: 0, usdPerDay: 0 };
    expect([limitsOf('acme'), limitsOf('other')]).toEqual([{ ...all, tasks: 5, usdPerDay: 1.5 }, all]);
    expect(limitsFrom(tenantLimitsConfig.parse({}))('acme')).toMatchObject({ sandboxes: 16, tasks: 10_000 });
  });

  it.each(['[]', '{', '{"*": {"task": 1}}', '{"a b": {}}', '{"acme": {"weight": 0}}', '{"acme": {"weight": 1.5}}'])(
    'are not %s',
    (text) => {
      expect(tenantLimitsConfig.safeParse({ ETUDE_TENANT_LIMITS: text }).success).toBe(false);
    },
  );
});
