import { RolloutRun } from '@etude/contracts/queues';
import { Usage } from '@etude/contracts/task';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { startReconciler } from '../reconciler.js';
import { questionsOf, type RedisJournal } from './journal.js';

const startQueue = queueForFile();
const MINUTE_MS = 60_000;

/** A task whose first worker may ask. */
async function start() {
  const rig = startQueue();
  const { producer, tasks, redis, keys } = rig;
  const { record, address, open } = await rig.submit({ priority: 4 });
  const question = { key: 'a1.s3.t1', text: 'Which year?', deadlineAt: Date.now() + MINUTE_MS };
  const reconciler = startReconciler({ producer, tasks, intervalMs: 3_600_000 });
  onTestFinished(() => reconciler.close());
  return {
    ...rig,
    address,
    question,
    open,
    id: record.id,
    holder: async () => (await open()) as RedisJournal,
    task: () => tasks.get('acme', record.id),
    events: async () => (await redis.xrange(keys.events('acme', record.id), '-', '+')).map(([, fields]) => JSON.parse(fields[1] ?? '')),
    answer: (text: string, requestId = '', key = '') => tasks.answer('acme', record.id, { key, text }, requestId),
    /** Lets the task's job end, as the worker of a rollout that waits does. */
    async endJob() {
      const consumer = rig.startConsumer(RolloutRun, async () => ({ outcome: 'waiting' as const }));
      await until(async () => (await producer.queue(RolloutRun.name).getJob(address.rolloutId))?.finishedOn);
      await consumer.close(1_000);
    },
    jobs: () => producer.queue(RolloutRun.name).getJobCountByTypes('waiting', 'prioritized'),
    /** Moves the deadline into the past. */
    passDeadline: () =>
      redis.hset(keys.task('acme', record.id), {
        question: JSON.stringify({ ...question, deadlineAt: 1 }),
        askedAt: Date.now() - MINUTE_MS,
      }),
    /** One pass of the reconciler, for which every entry is due. */
    async reconcile() {
      await redis.zadd(keys.rolloutOutbox, 'XX', '1', `acme/${address.rolloutId}`);
      return reconciler.runOnce();
    },
  };
}

/** A task that waits for an answer, without a job. */
async function waiting() {
  const rig = await start();
  const journal = await rig.holder();
  expect(await questionsOf(journal).ask(rig.question)).toBeNull();
  await rig.endJob();
  return { ...rig, journal };
}

describe('a question', () => {
  it('sets the task to input_required, tells watchers and is asked once', async () => {
    const { task, events, question, journal, open } = await waiting();
    expect(await task()).toMatchObject({ state: 'input_required', question });
    expect(await questionsOf(journal).ask(question)).toBeNull();
    expect((await events()).slice(-2)).toEqual([
      { type: 'state', state: 'input_required' },
      { type: 'question', ...question },
    ]);
    expect(await open()).toBeNull();
  });

  it('is refused to a worker that lost the rollout', async () => {
    const rig = await start();
    const first = await rig.holder();
    await rig.holder();
    await expect(questionsOf(first).ask(rig.question)).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    expect(await rig.task()).toMatchObject({ state: 'running', question: null });
  });

  it('expires at once after its deadline, and for a task that was asked to stop', async () => {
    const rig = await start();
    const questions = questionsOf(await rig.holder());
    expect(await questions.ask({ ...rig.question, deadlineAt: Date.now() - 1 })).toBe('expired');
    await rig.tasks.requestCancel('acme', rig.id);
    expect(await questions.ask(rig.question)).toBe('expired');
  });
});

describe('an answer', () => {
  it('reaches every later worker and fences the one that asked', async () => {
    const rig = await waiting();
    expect(await rig.answer('1984')).toMatchObject({ state: 'queued', question: null });
    expect(await rig.jobs()).toBe(1);
    await expect(rig.journal.append({ key: 'x', value: 1, usage: Usage.parse({}) }, [])).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    for (let worker = 1; worker <= 2; worker += 1) {
      const journal = await rig.holder();
      expect(journal.epoch).toBe(worker);
      expect(await questionsOf(journal).ask(rig.question)).toEqual({ answer: '1984' });
    }
  });

  it('leaves the time of waiting out of the wall clock', async () => {
    const rig = await waiting();
    await rig.passDeadline();
    await rig.answer('late, but not too late');
    const { startedAt } = await rig.holder();
    expect(startedAt - rig.journal.startedAt).toBeGreaterThanOrEqual(MINUTE_MS);
  });

  it('is accepted once per request id', async () => {
    const rig = await waiting();
    await rig.answer('1984', 'r1');
    expect(await rig.answer('1984', 'r1')).toMatchObject({ state: 'queued' });
    await expect(rig.answer('1985', 'r1')).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    await expect(rig.answer('1984', 'r2')).rejects.toThrow(/is queued and has no open question/);
  });

  it('to another question is refused with the key of the open one', async () => {
    const rig = await waiting();
    await expect(rig.answer('x', '', 'a1.s1')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('a1.s3.t1'),
    });
    expect(await rig.tasks.answer('acme', 't00000000', { key: '', text: 'x' }, '')).toBeNull();
  });

  it('gets its job from the reconciler when the old job had not ended', async () => {
    const rig = await start();
    await questionsOf(await rig.holder()).ask(rig.question);
    await rig.answer('1984');
    await rig.endJob();
    expect(await rig.reconcile()).toBe(1);
    expect(await rig.jobs()).toBe(1);
  });
});

describe('a task that waits', () => {
  it('gets no job before the deadline and one after it', async () => {
    const rig = await waiting();
    expect(await rig.reconcile()).toBe(0);
    const next = Number(await rig.redis.zscore(rig.keys.rolloutOutbox, `acme/${rig.address.rolloutId}`));
    expect(Math.abs(next - rig.question.deadlineAt)).toBeLessThan(100);
    await rig.passDeadline();
    expect(await rig.reconcile()).toBe(1);
    expect(await questionsOf(await rig.holder()).ask(rig.question)).toBe('expired');
    expect(await rig.task()).toMatchObject({ state: 'running', question: null });
  });

  it('ends at once when it is cancelled', async () => {
    const rig = await waiting();
    expect(await rig.tasks.requestCancel('acme', rig.id)).toMatchObject({ state: 'cancelled', stopReason: 'cancelled', question: null });
    await expect(rig.answer('x')).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  });
});
