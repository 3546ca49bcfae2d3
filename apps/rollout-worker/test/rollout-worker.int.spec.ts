import { rolloutIdOf } from '@etude/contracts/ids';
import { openJournal, questionsOf, type RedisJournal } from '@etude/queue/tasks/journal';
import { OutboxReader } from '@etude/queue/memory/memory-outbox';
import { listenToText, type ModelText } from '@etude/queue/tasks/events';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { fenced, type Rig, type Script, startRig, TENANT } from './rig.js';

const SOLVES = { rules: [{ match: { regex: 'critique', flags: 'i' }, reply: fenced('right') }], default: { reply: fenced('no') } };
const HANGS = { default: { reply: fenced('right'), delay_ms: 600_000 } };
const SLOW = { default: { reply: fenced('right'), delay_ms: 400 } };

const modelAsked = (rig: Rig, times: number) => until(() => rig.model.calls().length >= times, { what: `call ${times} of the model` });

/** A rig whose worker has a task. */
async function working(script: Script, given?: object) {
  const rig = await startRig(script);
  await rig.startWorker();
  return { rig, taskId: await rig.submit(given) };
}

const LESSONS = '{"summary": "It was doubled.", "reflection": "Read first."}';
const learning = (lessons: object) => ({ ...SOLVES, rules: [{ match: '# Lessons', ...lessons }, ...SOLVES.rules] });
const learned = async (rig: Rig, taskId: string) =>
  until(
    async () => {
      const task = await rig.tasks.get(TENANT, taskId);
      return task?.learning.state === 'pending' ? null : task?.learning;
    },
    { what: 'the end of learning' },
  );

describe('the rollout worker', () => {
  it('solves a submitted task and leaves what it learned in the outbox', async () => {
    const { rig, taskId } = await working(SOLVES);
    const task = await rig.finished(taskId);
    expect(task).toMatchObject({
      state: 'succeeded',
      stopReason: 'solved',
      result: { verdict: 'AC', scripted: true },
      usage: { attempts: 2, modelCalls: 3, executions: 2 },
    });
    expect(await new OutboxReader(rig.producer.redis, rig.producer.keys).pending(TENANT)).toBe(3);
    const named = { tenant: TENANT, taskId: task.id, epoch: 1 };
    const ended = { ...named, state: 'succeeded', stopReason: 'solved', attempts: 2, modelCalls: 3, message: 'A rollout has ended' };
    await until(() => rig.logged.length === 2, { what: 'the line for the end' });
    expect(rig.logged).toMatchObject([{ ...named, message: 'A rollout has started' }, ended]);
  });

  it('publishes the text of the model while it is written', async () => {
    const rig = await startRig({ default: { reply: fenced('right') } });
    const taskId = await rig.submit();
    const heard: ModelText[] = [];
    await listenToText(rig.producer.redis, rig.producer.keys.text(TENANT, taskId), (text) => heard.push(text)).ready;
    await rig.startWorker();
    await rig.finished(taskId);
    await until(() => heard.map(({ text }) => text).join('') === fenced('right'), { what: 'the whole text' });
    expect(new Set(heard.map(({ step }) => step))).toEqual(new Set(['a1.generate']));
  });

  it('aborts a running model call when the task is cancelled', async () => {
    const { rig, taskId } = await working(HANGS);
    await modelAsked(rig, 1);
    await rig.tasks.requestCancel(TENANT, taskId);
    expect(await rig.finished(taskId)).toMatchObject({ state: 'cancelled', stopReason: 'cancelled', result: null });
  });

  it('aborts a running model call at the wall time limit', async () => {
    const { rig, taskId } = await working(HANGS, { limits: { wallMs: 300 } });
    expect(await rig.finished(taskId)).toMatchObject({ state: 'failed', stopReason: 'wall_time' });
  });

  it.each([
    [0, 2],
    [60_000, 1],
  ])('hands a rollout to another worker when it is closed; a drain of %s ms takes %i model calls', async (drainMs, calls) => {
    const rig = await startRig(SLOW);
    const first = await rig.startWorker();
    const taskId = await rig.submit();
    await modelAsked(rig, 1);
    await first.drain(drainMs);
    await first.close();
    await rig.startWorker();
    expect(await rig.finished(taskId)).toMatchObject({ state: 'succeeded', usage: { modelCalls: 1, attempts: 1 } });
    expect(rig.model.calls()).toHaveLength(calls);
  });

  it('leaves an execution that nobody runs yet to the next worker at once when it drains', async () => {
    const rig = await startRig(SOLVES);
    const executions = rig.producer.queue('sandbox.execute');
    await executions.pause();
    const first = await rig.startWorker();
    const taskId = await rig.submit({ limits: { attemptsMax: 1 } });
    await until(async () => (await executions.getJobCounts()).waiting === 1, { what: 'the job of the execution' });
    await first.drain(600_000);
    await first.close();
    await executions.resume();
    await rig.startWorker();
    expect(await rig.finished(taskId)).toMatchObject({ stopReason: 'attempts', usage: { modelCalls: 1, executions: 1 } });
    expect(rig.model.calls()).toHaveLength(1);
  });

  it('gives up on a rollout that lost too many workers', async () => {
    const rig = await startRig(SOLVES);
    const taskId = await rig.submit();
    await rig.producer.redis.hset(rig.producer.keys.rollout(rolloutIdOf(taskId)), { generation: 0, epoch: 20 });
    await rig.startWorker();
    expect(await rig.finished(taskId)).toMatchObject({ state: 'failed', stopReason: 'error', error: { code: 'WORKER_LOST' } });
    expect(rig.model.calls()).toEqual([]);
  });

  it('ends without an error when another worker has taken the rollout', async () => {
    const rig = await startRig(SLOW);
    const taskId = await rig.submit();
    const worker = await rig.startWorker();
    await modelAsked(rig, 1);
    const address = { tenant: TENANT, taskId, rolloutId: rolloutIdOf(taskId) };
    const other = await openJournal(rig.producer.redis, rig.producer.keys, address);
    await until(async () => (await rig.producer.queue('rollout.run').getJobCounts('completed')).completed === 1, {
      what: 'the end of the job',
    });
    expect(await rig.tasks.get(TENANT, taskId)).toMatchObject({ state: 'running', usage: { steps: 1 } });
    expect((await rig.dead.list('rollout.run', { pageSize: 10 })).items).toEqual([]);
    expect(other?.epoch).toBe(2);
    await worker.close();
  });

  it('leaves a task that waits for its caller alone, and solves it after the answer', async () => {
    const rig = await startRig(SOLVES);
    const taskId = await rig.submit();
    const { redis, keys } = rig.producer;
    const asking = (await openJournal(redis, keys, { tenant: TENANT, taskId, rolloutId: rolloutIdOf(taskId) })) as RedisJournal;
    await questionsOf(asking).ask({ key: 'a1.s1', text: 'Which?', deadlineAt: Date.now() + 600_000 });
    await rig.startWorker();
    const job = () => rig.producer.queue('rollout.run').getJob(rolloutIdOf(taskId));
    await until(async () => (await job())?.returnvalue?.outcome === 'waiting', { what: 'the end of the job' });
    expect(rig.model.calls()).toEqual([]);
    await rig.tasks.answer(TENANT, taskId, { key: '', text: 'this one' }, '');
    expect(await rig.finished(taskId)).toMatchObject({ state: 'succeeded', question: null });
  });

  describe('learning', () => {
    it('follows the verdict, and goes on in another worker', async () => {
      const rig = await startRig(learning({ reply: LESSONS, delay_ms: 400 }));
      const first = await rig.startWorker();
      const taskId = await rig.submit({ mode: 'training' });
      expect(await rig.finished(taskId)).toMatchObject({ state: 'succeeded', usage: { modelCalls: 3 }, learning: { state: 'pending' } });
      await modelAsked(rig, 4);
      await first.close();
      await rig.startWorker();
      expect(await learned(rig, taskId)).toMatchObject({ state: 'done', usage: { modelCalls: 1 }, error: null });
      expect(rig.model.calls()).toHaveLength(5);
      expect(await new OutboxReader(rig.producer.redis, rig.producer.keys).pending(TENANT)).toBe(4);
    });

    it('becomes a dead letter, and ends after a redrive', async () => {
      const { rig, taskId } = await working(learning({ status: 400, error: 'no such model', times: 1 }), { mode: 'training' });
      expect(await rig.finished(taskId)).toMatchObject({ state: 'succeeded', stopReason: 'solved' });
      expect(await learned(rig, taskId)).toMatchObject({ state: 'failed', error: { code: 'MODEL_REFUSED' } });
      await until(async () => (await rig.producer.queue('rollout.learn').getFailedCount()) === 1, { what: 'the dead letter' });
      expect(await rig.dead.redrive('rollout.learn', { all: true })).toEqual({ redriven: 1, refused: [] });
      expect(await learned(rig, taskId)).toMatchObject({ state: 'done' });
    });

    it('stops a running model call when it is cancelled', async () => {
      const { rig, taskId } = await working(learning({ reply: LESSONS, delay_ms: 600_000 }), { mode: 'training' });
      await rig.finished(taskId);
      await modelAsked(rig, 4);
      await rig.tasks.requestCancel(TENANT, taskId);
      await until(async () => (await rig.producer.queue('rollout.learn').getCompletedCount()) === 1, { what: 'the end of the job' });
      expect(await rig.tasks.get(TENANT, taskId)).toMatchObject({
        state: 'succeeded',
        learning: { state: 'failed', error: { code: 'CANCELLED' } },
      });
    });
  });
});
