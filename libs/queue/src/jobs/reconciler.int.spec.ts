import { EtudeError } from '@etude/contracts/errors';
import type { MemoryWrite } from '@etude/contracts/memory';
import { MemoryWriteJob, RolloutRun } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { redisForFile, SPEC, startConsumer, startProducer, WRITE } from '../../test/rig.js';
import { DeadLetters } from './dead-letters.js';
import { openJournal } from '../tasks/journal.js';
import { OutboxReader, RedisMemoryOutbox } from '../memory/memory-outbox.js';
import { startReconciler } from './reconciler.js';

const file = redisForFile();

function start() {
  const prefix = file.prefix();
  const rig = startProducer(file.server.url, prefix);
  const { producer, tasks } = rig;
  const reconciler = startReconciler({ producer, tasks, intervalMs: 3_600_000 });
  onTestFinished(() => reconciler.close());
  const letters = new DeadLetters(producer, tasks);
  const rollouts = producer.queue(RolloutRun.name);
  const submit = async () => {
    const { record } = await tasks.submit('acme', { ...SPEC, priority: 4 }, '');
    return { taskId: record.id, rolloutId: `${record.id}-r1`, state: async () => (await tasks.get('acme', record.id))?.state };
  };
  return { ...rig, prefix, options: { redisUrl: file.server.url, prefix, concurrency: 1 }, reconciler, letters, rollouts, submit };
}
type Rig = ReturnType<typeof start>;

/** As left by a crash between the record and its job. */
async function withoutJob({ rollouts, redis, keys, submit }: Rig) {
  const task = await submit();
  await (await rollouts.getJob(task.rolloutId))?.remove();
  await redis.zadd(keys.rolloutOutbox, 1, `acme/${task.rolloutId}`);
  return task;
}

/** Kills the job of a task, with nobody told. */
async function dead(rig: Rig) {
  const task = await rig.submit();
  const consumer = startConsumer(RolloutRun, () => Promise.reject(new EtudeError('MEMORY_VERSION', 'broken')), rig.options);
  await until(async () => (await rig.rollouts.getJob(task.rolloutId))?.finishedOn);
  await consumer.close(1_000);
  return task;
}

describe('reconciler', () => {
  it('adds the job of a task that was accepted without one', async () => {
    const rig = start();
    const task = await withoutJob(rig);
    expect(await rig.reconciler.runOnce()).toBe(1);
    const job = await rig.rollouts.getJob(task.rolloutId);
    expect([job?.data, job?.priority]).toEqual([{ v: 1, tenant: 'acme', taskId: task.taskId, rolloutId: task.rolloutId }, 6]);
    expect(await rig.redis.zcard(rig.keys.rolloutOutbox)).toBe(0);
    expect(await rig.reconciler.runOnce()).toBe(0);
  });

  it('leaves entries alone that are still on their way', async () => {
    const rig = start();
    const task = await withoutJob(rig);
    const [seconds] = await rig.redis.time();
    await rig.redis.zadd(rig.keys.rolloutOutbox, (seconds ?? 0) * 1_000 + 60_000, `acme/${task.rolloutId}`);
    expect(await rig.reconciler.runOnce()).toBe(0);
  });

  it('adds no job for a task that has ended', async () => {
    const rig = start();
    const task = await withoutJob(rig);
    await rig.tasks.requestCancel('acme', task.taskId);
    await rig.redis.zadd(rig.keys.rolloutOutbox, 1, `acme/${task.rolloutId}`, 1, 'nonsense');
    expect(await rig.reconciler.runOnce()).toBe(0);
    expect(await rig.redis.zcard(rig.keys.rolloutOutbox)).toBe(0);
  });

  it('ends a task whose job is dead', async () => {
    const rig = start();
    const task = await dead(rig);
    expect(await rig.reconciler.runOnce()).toBe(1);
    expect(await rig.tasks.get('acme', task.taskId)).toMatchObject({
      state: 'failed',
      stopReason: 'error',
      error: { code: 'MEMORY_VERSION', message: 'broken' },
    });
    expect(await rig.reconciler.runOnce()).toBe(0);
  });

  it('completes a redrive that crashed half way', async () => {
    const rig = start();
    const task = await dead(rig);
    await rig.reconciler.runOnce();
    await rig.tasks.requeue('acme', task.taskId);
    await rig.redis.zadd(rig.keys.rolloutOutbox, 1, `acme/${task.rolloutId}`);
    expect(await rig.reconciler.runOnce()).toBe(1);
    expect([await task.state(), await (await rig.rollouts.getJob(task.rolloutId))?.getState()]).toEqual(['queued', 'prioritized']);
  });

  it('adds the job of a memory write that has none or a used one', async () => {
    const rig = start();
    const outbox = new RedisMemoryOutbox(rig.producer);
    const reader = new OutboxReader(rig.redis, rig.keys);
    const writes = rig.producer.queue(MemoryWriteJob.name);
    await outbox.put('acme', 'w1', WRITE);
    await outbox.put('acme', 'w2', WRITE);
    await (await writes.getJob('w1'))?.remove();
    await rig.redis.zadd(rig.keys.memoryOutboxIndex, 'XX', 1, 'acme/w1', 1, 'acme/w2');
    expect(await rig.reconciler.runOnce()).toBe(1);
    let runs = 0;
    startConsumer(MemoryWriteJob, async () => ({ applied: ++runs > 0 }), rig.options);
    await until(async () => (await writes.getCompletedCount()) === 2);
    await rig.redis.zadd(rig.keys.memoryOutboxIndex, 'XX', 1, 'acme/w1');
    expect(await rig.reconciler.runOnce()).toBe(1);
    await until(() => runs === 3);
    expect(await reader.pending('acme')).toBe(2);
  });

  it('leaves a dead memory write to the operator', async () => {
    const rig = start();
    await new RedisMemoryOutbox(rig.producer).put('acme', 'w1', WRITE);
    startConsumer(MemoryWriteJob, () => Promise.reject(new EtudeError('MEMORY_VERSION', 'old')), rig.options);
    await until(async () => (await rig.producer.queue(MemoryWriteJob.name).getFailedCount()) === 1);
    await rig.redis.zadd(rig.keys.memoryOutboxIndex, 'XX', 1, 'acme/w1');
    expect(await rig.reconciler.runOnce()).toBe(0);
    expect(Number(await rig.redis.zscore(rig.keys.memoryOutboxIndex, 'acme/w1'))).toBeGreaterThan(Date.now() + 30_000);
  });
});

describe('memory outbox', () => {
  it('keeps the first write under an id until it is removed', async () => {
    const { producer, redis, keys } = start();
    const outbox = new RedisMemoryOutbox(producer);
    const reader = new OutboxReader(redis, keys);
    await outbox.put('acme', 'w1', WRITE);
    await outbox.put('acme', 'w1', { ...WRITE, cue: 'other' } as MemoryWrite);
    expect(await reader.load('acme', 'w1')).toEqual(WRITE);
    expect([await reader.pending('acme'), await reader.pending('other')]).toEqual([1, 0]);
    await reader.remove('acme', 'w1');
    expect([await reader.load('acme', 'w1'), await reader.pending('acme'), await redis.zcard(keys.memoryOutboxIndex)]).toEqual([
      null,
      0,
      0,
    ]);
  });
});

describe('dead letters', () => {
  it('lists queues with what waits in them', async () => {
    const rig = start();
    await rig.submit();
    await rig.producer.queue(RolloutRun.name).add('x', {}, { jobId: 'plain', timestamp: Date.now() - 5_000 });
    await startConsumer(MemoryWriteJob, async () => ({ applied: true }), rig.options).ready();
    await until(async () => (await rig.letters.queues()).some(({ workers }) => workers === 1));
    const queues = await rig.letters.queues();
    expect(queues.map(({ name, waiting, workers }) => [name, waiting, workers])).toEqual([
      ['rollout.run', 2, 0],
      ['sandbox.execute', 0, 0],
      ['memory.write', 0, 1],
      ['consolidation.run', 0, 0],
      ['skill.verify', 0, 0],
      ['skill.request', 0, 0],
      ['memory.upkeep', 0, 0],
    ]);
    expect(queues[0]?.oldestWaitingMs).toBeGreaterThanOrEqual(5_000);
    expect(queues[1]?.oldestWaitingMs).toBe(0);
  });

  it('pages through dead letters, newest first', async () => {
    const rig = start();
    for (let i = 0; i < 7; i++) await rig.producer.queue(MemoryWriteJob.name).add('x', { v: 1, bad: i }, { jobId: `bad${i}` });
    startConsumer(MemoryWriteJob, async () => ({ applied: true }), rig.options);
    await until(async () => (await rig.producer.queue(MemoryWriteJob.name).getFailedCount()) === 7);
    const ids: string[] = [];
    for (let after: string | undefined = undefined; ;) {
      const page = await rig.letters.list(MemoryWriteJob.name, { pageSize: 2, after });
      ids.push(...page.letters.map(({ id }) => id));
      expect(page.letters[0]).toMatchObject({
        queue: MemoryWriteJob.name,
        code: 'JOB_PAYLOAD_INVALID',
        path: 'tenant',
        attempts: 1,
        payload: { v: 1 },
      });
      if (!page.next) break;
      after = page.next;
    }
    expect(ids.toSorted()).toEqual(Array.from({ length: 7 }, (_, i) => `bad${i}`));
    await expect(rig.letters.list('no.queue', { pageSize: 1 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(rig.letters.list(MemoryWriteJob.name, { pageSize: 1, after: 'x' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('redrives a rollout with its task', async () => {
    const rig = start();
    const task = await dead(rig);
    await rig.reconciler.runOnce();
    expect(await rig.letters.redrive(RolloutRun.name, { all: true })).toEqual({ redriven: 1, refused: [] });
    expect(await task.state()).toBe('queued');
    startConsumer(
      RolloutRun,
      async ({ tenant, taskId, rolloutId }) => {
        const journal = await openJournal(rig.redis, rig.keys, { tenant, taskId, rolloutId });
        await journal?.finish({ state: 'succeeded', stopReason: 'solved', result: null, usage: journal.usage, error: null }, []);
        return { outcome: 'succeeded' as const };
      },
      rig.options,
    );
    await until(async () => (await task.state()) === 'succeeded');
    await until(async () => (await rig.rollouts.getCompletedCount()) === 1);
    expect(await rig.reconciler.runOnce()).toBe(0);
  });

  it('redrives a job that cost too many workers', async () => {
    const rig = start();
    const writes = rig.producer.queue(MemoryWriteJob.name);
    await rig.producer.add(MemoryWriteJob, { v: 1, tenant: 'acme', writeId: 'w1' });
    await rig.redis.hset(writes.toKey('w1'), 'stc', 1_000);
    startConsumer(MemoryWriteJob, async () => ({ applied: true }), rig.options);
    await until(async () => (await writes.getFailedCount()) === 1);
    expect(await rig.letters.list(MemoryWriteJob.name, { pageSize: 5 })).toMatchObject({ letters: [{ id: 'w1', code: 'WORKER_LOST' }] });
    await rig.letters.redrive(MemoryWriteJob.name, { ids: ['w1'] });
    await until(async () => (await writes.getCompletedCount()) === 1);
  });

  it('says why a dead letter was not redriven', async () => {
    const rig = start();
    const task = await dead(rig);
    await rig.tasks.requestCancel('acme', task.taskId);
    await rig.rollouts.add('x', { v: 2 }, { jobId: 'bad' });
    startConsumer(RolloutRun, async () => ({ outcome: 'failed' as const }), rig.options);
    await until(async () => (await rig.rollouts.getFailedCount()) === 2);
    const { redriven, refused } = await rig.letters.redrive(RolloutRun.name, { ids: [task.rolloutId, 'bad', 'none'] });
    expect(redriven).toBe(0);
    expect(refused).toEqual([
      `${task.rolloutId}: task ${task.taskId} is cancelled already`,
      expect.stringMatching(/^bad: its payload still is wrong at "v"/),
      'none: no such job',
    ]);
  });
});
