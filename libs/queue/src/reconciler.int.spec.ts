import { EtudeError } from '@etude/contracts/errors';
import {
  ConsolidationRunJob,
  MemoryUpkeepJob,
  MemoryWriteJob,
  type QueueDeclaration,
  RolloutLearn,
  RolloutRun,
  SkillRequest,
} from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endedRollout, queueForFile, SOLVED, SPEC, WRITE } from '../test/rig.js';
import { DeadLetters } from './jobs/dead-letters.js';
import { openJournal } from './tasks/journal.js';
import { OutboxReader, RedisMemoryOutbox } from './memory/memory-outbox.js';
import { WantedSkills } from './agents/wanted-skills.js';
import { Producer } from './jobs/producer.js';
import { ConsolidationStore } from './memory/consolidation-store.js';
import { UpkeepStore } from './memory/upkeep-store.js';
import { startReconciler } from './reconciler.js';
import { TaskStore } from './tasks/task-store.js';

const startQueue = queueForFile();

function start() {
  const rig = startQueue();
  const { producer, tasks } = rig;
  const reconciler = startReconciler({ producer, tasks, intervalMs: 3_600_000 });
  onTestFinished(() => reconciler.close());
  const letters = new DeadLetters(producer, tasks);
  const rollouts = producer.queue(RolloutRun.name);
  const submit = async () => {
    const { address } = await rig.submit({ priority: 4 });
    return { ...address, state: async () => (await tasks.get('acme', address.taskId))?.state };
  };
  return { ...rig, reconciler, letters, rollouts, submit };
}
type Rig = ReturnType<typeof start>;

/** Makes every outbox entry due now. */
async function makeDue({ redis, keys }: Rig): Promise<void> {
  for (const outbox of await redis.keys(keys.outbox('*'))) {
    if ((await redis.type(outbox)) !== 'zset') continue;
    for (const entry of await redis.zrange(outbox, '0', '-1')) await redis.zadd(outbox, 'XX', '1', entry);
  }
}

const pass = async (rig: Rig) => {
  await makeDue(rig);
  return rig.reconciler.runOnce();
};

/** A process that dies between a record and its job. */
class DyingProducer extends Producer {
  override add(): Promise<void> {
    return Promise.reject(new EtudeError('QUEUE_UNAVAILABLE', 'the process died'));
  }
}

/** Submits a task and lets its job die. The record doesn't change. */
async function dead(rig: Rig) {
  const task = await rig.submit();
  const consumer = rig.startConsumer(RolloutRun, () => Promise.reject(new EtudeError('MEMORY_VERSION', 'broken')));
  await until(async () => (await rig.rollouts.getJob(task.rolloutId))?.finishedOn);
  await consumer.close(1_000);
  return task;
}

const CONSOLIDATION = { agent: null, days: 7, dryRun: false };

async function requestRun(producer: Producer) {
  const runs = new ConsolidationStore(producer);
  const { id } = await runs.create('acme', CONSOLIDATION, '');
  return () => runs.get('acme', id);
}
async function requestErasure(producer: Producer) {
  const store = new UpkeepStore(producer);
  const { id } = await store.requestErasure({ tenant: 'acme', requestId: '', asked: {} }, { agent: 'coder' });
  return async () => (await store.loadErasure('acme', id))?.receipt;
}
async function requestMove(producer: Producer) {
  const store = new UpkeepStore(producer);
  await store.startReembedding({ model: 'a' });
  return () => store.reembedding();
}
async function requestSkill(producer: Producer) {
  const store = new WantedSkills(producer);
  const wish = { tenant: 'acme', agent: 'coder', user: null, skill: 'parse_csv', description: 'Reads CSV.', example: null };
  const { id } = await store.request({ wish, requestId: '' });
  return () => store.get('acme', id);
}
async function requestLearning(producer: Producer) {
  const tasks = new TaskStore(producer);
  await tasks.startLearning(await endedRollout(producer, tasks));
}

type RecordWork = readonly [string, QueueDeclaration, (producer: Producer) => Promise<() => Promise<unknown>>];
/** The kinds of work whose record fails with its job. Each requests a record and returns a function that reads it. */
const RECORDS: readonly RecordWork[] = [
  ['consolidation run', ConsolidationRunJob, requestRun],
  ['erasure', MemoryUpkeepJob, requestErasure],
  ['move to another model', MemoryUpkeepJob, requestMove],
  ['wish', SkillRequest, requestSkill],
];
const WORKS: ReadonlyArray<readonly [string, QueueDeclaration, (producer: Producer) => Promise<unknown>]> = [
  ['task', RolloutRun, (producer) => new TaskStore(producer).submit('acme', { ...SPEC, priority: 4 }, '')],
  ['lesson', RolloutLearn, requestLearning],
  ['memory write', MemoryWriteJob, (producer) => new RedisMemoryOutbox(producer).put('acme', 'w1', WRITE)],
  ...RECORDS,
];

describe('reconciler', () => {
  it.each(WORKS)('adds the job of a %s whose process died before adding it', async (_what, { name }, request) => {
    const rig = start();
    const dying = new DyingProducer(rig.options.redisUrl, rig.options.prefix);
    onTestFinished(() => dying.close());
    await request(dying);
    const queue = rig.producer.queue(name);
    expect(await queue.getJobCountByTypes('waiting', 'prioritized')).toBe(0);
    expect(await rig.reconciler.runOnce()).toBe(0);
    expect(await pass(rig)).toBe(1);
    expect(await queue.getJobCountByTypes('waiting', 'prioritized')).toBe(1);
    expect(await pass(rig)).toBe(0);
  });

  it('skips unreadable entries and reconciles the rest', async () => {
    const rig = start();
    const runs = new ConsolidationStore(rig.producer);
    const ids: string[] = [];
    for (let i = 0; i < 3; i += 1) ids.push((await runs.create('acme', CONSOLIDATION, '')).id);
    const queue = rig.producer.queue(ConsolidationRunJob.name);
    await queue.obliterate({ force: true });
    const [broken = '', newer = ''] = ids;
    await rig.redis.set(rig.keys.consolidation('acme', broken), '{"state":"no state"}');
    const text = (await rig.redis.get(rig.keys.consolidation('acme', newer))) ?? '{}';
    await rig.redis.set(rig.keys.consolidation('acme', newer), JSON.stringify({ ...JSON.parse(text), fieldOfALaterVersion: 1 }));
    expect(await pass(rig)).toBe(2);
    expect(new Set((await queue.getWaiting()).map(({ id }) => id))).toEqual(new Set(ids.slice(1)));
    const next = Number(await rig.redis.zscore(rig.keys.consolidationOutbox, `acme/${broken}`));
    expect(next).toBeGreaterThan(Date.now() + 30_000);
  });

  it.each(RECORDS)('marks a %s as failed with the reason when its job is dead', async (_what, declaration, request) => {
    const rig = start();
    const record = await request(rig.producer);
    rig.startConsumer(declaration, () => Promise.reject(new EtudeError('WORKER_LOST', 'took its worker down')));
    await until(async () => (await rig.producer.queue(declaration.name).getFailedCount()) === 1);
    expect(await pass(rig)).toBe(1);
    expect(await record()).toMatchObject({ state: 'failed' });
    expect(JSON.stringify(await record())).toContain('"WORKER_LOST: took its worker down"');
    expect(await pass(rig)).toBe(0);
  });

  it('marks a task as failed with its dead job, and completes a redrive that crashed half way', async () => {
    const rig = start();
    const task = await dead(rig);
    expect(await pass(rig)).toBe(1);
    const error = { code: 'MEMORY_VERSION', message: 'broken' };
    expect(await rig.tasks.get('acme', task.taskId)).toMatchObject({ state: 'failed', stopReason: 'error', error });
    expect(await pass(rig)).toBe(0);
    await rig.tasks.requeue('acme', task.taskId);
    expect(await pass(rig)).toBe(1);
    expect([await task.state(), await (await rig.rollouts.getJob(task.rolloutId))?.getState()]).toEqual(['queued', 'prioritized']);
  });

  it('adds the job of a memory write again when it ended without applying the write', async () => {
    const rig = start();
    await new RedisMemoryOutbox(rig.producer).put('acme', 'w1', WRITE);
    let runs = 0;
    rig.startConsumer(MemoryWriteJob, async () => ({ applied: ++runs > 0 }));
    await until(async () => (await rig.producer.queue(MemoryWriteJob.name).getCompletedCount()) === 1);
    expect(await pass(rig)).toBe(1);
    await until(() => runs === 2);
    expect(await new OutboxReader(rig.redis, rig.keys).pending('acme')).toBe(1);
  });

  it('leaves a dead memory write to the operator', async () => {
    const rig = start();
    await new RedisMemoryOutbox(rig.producer).put('acme', 'w1', WRITE);
    rig.startConsumer(MemoryWriteJob, () => Promise.reject(new EtudeError('MEMORY_VERSION', 'old')));
    await until(async () => (await rig.producer.queue(MemoryWriteJob.name).getFailedCount()) === 1);
    expect(await pass(rig)).toBe(0);
    expect(Number(await rig.redis.zscore(rig.keys.memoryOutboxIndex, 'acme/w1'))).toBeGreaterThan(Date.now() + 30_000);
  });
});

describe('dead letters', () => {
  it('go after their retention, and work that is not done is tried again', async () => {
    const rig = start();
    await new RedisMemoryOutbox(rig.producer).put('acme', 'w1', WRITE);
    const writes = rig.producer.queue(MemoryWriteJob.name);
    const dying = rig.startConsumer(MemoryWriteJob, () => Promise.reject(new EtudeError('MEMORY_VERSION', 'old')));
    await until(async () => (await writes.getFailedCount()) === 1);
    await dying.close(0);
    const cleaning = startReconciler({ producer: rig.producer, tasks: rig.tasks, intervalMs: 3_600_000, deadKeptMs: -1 });
    onTestFinished(() => cleaning.close());
    await until(async () => (await writes.getFailedCount()) === 0);
    expect(await pass(rig)).toBe(1);
    expect(await writes.getWaitingCount()).toBe(1);
  });

  it('lists queues with their counts of waiting jobs and workers', async () => {
    const rig = start();
    await rig.submit();
    await rig.producer.queue(RolloutRun.name).add('x', {}, { jobId: 'plain', timestamp: Date.now() - 5_000 });
    await rig.startConsumer(MemoryWriteJob, async () => ({ applied: true })).ready();
    await until(async () => (await rig.letters.queues()).some(({ workers }) => workers === 1));
    const queues = await rig.letters.queues();
    expect(queues.map(({ name, waiting, workers }) => [name, waiting, workers])).toEqual([
      ['rollout.run', 2, 0],
      ['rollout.learn', 0, 0],
      ['sandbox.execute', 0, 0],
      ['memory.write', 0, 1],
      ['consolidation.run', 0, 0],
      ['skill.verify', 0, 0],
      ['skill.request', 0, 0],
      ['memory.upkeep', 0, 0],
      ['memory.settle', 0, 0],
    ]);
    expect(queues[0]?.oldestWaitingMs).toBeGreaterThanOrEqual(5_000);
    expect(queues[1]?.oldestWaitingMs).toBe(0);
  });

  it('counts jobs that wait, have a priority or are due', async () => {
    const { producer, letters } = start();
    const add = (id: string, options: object) =>
      producer.add(RolloutRun, { v: 1, tenant: 'acme', taskId: `t0000000${id}`, rolloutId: `t0000000${id}-r1` }, options);
    await add('1', {});
    await add('2', { priority: 3 });
    await add('3', { delayMs: 60_000 });
    const counts = async () => (await letters.queues()).find(({ name }) => name === RolloutRun.name);
    expect(await counts()).toMatchObject({ waiting: 2, active: 0, delayed: 1, due: 0 });
    await add('4', { delayMs: 1 });
    await until(async () => (await counts())?.due === 1, { what: 'a due job' });
  });

  it('has failed learning, whose redrive makes it pending again while the task stays as it ended', async () => {
    const rig = start();
    const { taskId } = await endedRollout(rig.producer, rig.tasks);
    await pass(rig);
    const consumer = rig.startConsumer(RolloutLearn, () => Promise.reject(new EtudeError('MODEL_REFUSED', 'no')));
    await until(async () => (await rig.producer.queue(RolloutLearn.name).getFailedCount()) === 1);
    await consumer.close(1_000);
    const learning = async () => (await rig.tasks.get('acme', taskId))?.learning;
    expect(await pass(rig)).toBe(1);
    expect(await learning()).toMatchObject({ state: 'failed', error: { code: 'MODEL_REFUSED', message: 'no' } });
    expect(await rig.letters.redrive(RolloutLearn.name, { all: true })).toEqual({ redriven: 1, refused: [] });
    expect(await rig.tasks.get('acme', taskId)).toMatchObject({ state: 'succeeded', learning: { state: 'pending', error: null } });
    expect(await pass(rig)).toBe(0);
  });

  it('redrives a rollout with its task', async () => {
    const rig = start();
    const task = await dead(rig);
    await pass(rig);
    expect(await rig.letters.redrive(RolloutRun.name, { all: true })).toEqual({ redriven: 1, refused: [] });
    expect(await task.state()).toBe('queued');
    rig.startConsumer(RolloutRun, async ({ tenant, taskId, rolloutId }) => {
      const journal = await openJournal(rig.redis, rig.keys, { tenant, taskId, rolloutId });
      await journal?.finish({ ...SOLVED, usage: journal.usage });
      return { outcome: 'succeeded' as const };
    });
    await until(async () => (await task.state()) === 'succeeded');
    await until(async () => (await rig.rollouts.getCompletedCount()) === 1);
    expect(await pass(rig)).toBe(0);
  });
});
