import { TaskSpec } from '@etude/contracts/task';
import { describe, expect, it } from 'vitest';
import { endedRollout, queueForFile, SOLVED, SPEC } from '../../test/rig.js';
import { openLearning } from './journal.js';
import { newId } from '../redis/keys.js';
import { retentionFrom, taskConfig } from './task-store.js';

const start = queueForFile();
const spec = (more: object) => TaskSpec.parse({ ...SPEC, ...more });

it('reads the retention of tasks from the settings', () => {
  expect(retentionFrom(taskConfig.parse({}))).toEqual({ retentionMs: 7 * 86_400_000 });
  expect(retentionFrom(taskConfig.parse({ ETUDE_TASK_RETENTION_DAYS: '30' }))).toEqual({ retentionMs: 30 * 86_400_000 });
});

it('compares the strategy that was sent, not that of the agent', async () => {
  const { tasks } = start();
  const first = await tasks.submit('acme', SPEC, 'r1', 'codeact');
  expect(first.record.spec.strategy).toBe('codeact');
  expect(await tasks.submit('acme', SPEC, 'r1', 'attempts')).toEqual({ record: first.record, created: false });
  await expect(tasks.submit('acme', spec({ strategy: 'codeact' }), 'r1')).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
});

describe('list', () => {
  it('ends a page of big tasks early, and the next page continues', async () => {
    const { tasks } = start();
    const big = spec({ files: [{ path: 'f', contentBase64: 'AAAA'.repeat(300_000) }] });
    for (let i = 0; i < 3; i++) await tasks.submit('acme', big, '');
    const first = await tasks.list('acme', { pageSize: 10 });
    expect(first.items).toHaveLength(1);
    expect((await tasks.list('acme', { pageSize: 10, after: first.nextAfter ?? '' })).items).toHaveLength(1);
  });

  it('counts results among the bytes of a page', async () => {
    const { tasks, redis, keys, submit } = start();
    for (let i = 0; i < 3; i++) {
      const { record } = await submit();
      await redis.hset(keys.task('acme', record.id), 'result', JSON.stringify({ output: 'a'.repeat(1_000_000) }));
    }
    expect((await tasks.list('acme', { pageSize: 10 })).items).toHaveLength(2);
  });

  it('leaves out tasks that have expired', async () => {
    const { tasks, redis, keys, submit } = start();
    const { record } = await submit();
    await redis.del(keys.task('acme', record.id));
    expect(await tasks.list('acme', { pageSize: 10 })).toEqual({ items: [], nextAfter: null });
    expect(await redis.zcard(keys.tasks('acme'))).toBe(0);
  });
});

describe('cancel and failure', () => {
  it('fences the worker of a task that was marked as failed', async () => {
    const { tasks, submit } = start();
    const { record, open } = await submit();
    const journal = await open();
    expect(await tasks.markFailed('acme', record.id, { code: 'WORKER_LOST', message: 'gone' }, Date.now())).toBe('failed');
    await expect(journal?.append({ key: 'a', value: 1, usage: record.usage }, [])).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    expect(await tasks.get('acme', record.id)).toMatchObject({ state: 'failed', stopReason: 'error', error: { code: 'WORKER_LOST' } });
    expect(await tasks.markFailed('acme', record.id, { code: 'INTERNAL', message: 'again' }, Date.now())).toBe('final');
  });

  it('cancels the learning of an ended task, and nothing else', async () => {
    const { tasks, producer, redis, keys } = start();
    const address = await endedRollout(producer, tasks);
    const journal = await openLearning(redis, keys, address);
    const cancelled = { state: 'failed', error: { code: 'CANCELLED' } };
    expect(await tasks.requestCancel('acme', address.taskId)).toMatchObject({ state: 'succeeded', learning: cancelled });
    await expect(journal?.finish({ state: 'done', error: null })).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    expect(await redis.zcard(keys.learningOutbox)).toBe(0);
  });

  it('learns nothing from a task that was asked to stop before its end', async () => {
    const { tasks, redis, keys, submit } = start();
    const { record, address, open } = await submit();
    const journal = await open();
    await tasks.requestCancel('acme', record.id);
    await journal?.finish({ ...SOLVED, usage: record.usage, learnFrom: [] });
    expect(await tasks.get('acme', record.id)).toMatchObject({ state: 'succeeded', learning: { state: 'none' } });
    expect(await openLearning(redis, keys, address)).toBeNull();
  });

  it('gives a redriven task a fresh count of takeovers and its journal', async () => {
    const { tasks, redis, keys, submit } = start();
    const { record, open } = await submit();
    const first = await open();
    await first?.append({ key: 'a1.draft', value: 1, usage: record.usage }, []);
    await open();
    await tasks.markFailed('acme', record.id, { code: 'INTERNAL', message: 'x' }, Date.now());
    expect(await tasks.requeue('acme', record.id)).toBe('queued');
    expect(await tasks.get('acme', record.id)).toMatchObject({ state: 'queued', error: null, stopReason: null, endedAt: null });
    const again = await open();
    expect([again?.epoch, [...(again?.entries.keys() ?? [])]]).toEqual([1, ['a1.draft']]);
    await expect(first?.append({ key: 'b', value: 1, usage: record.usage }, [])).rejects.toMatchObject({ code: 'JOURNAL_FENCED' });
    expect(await redis.pttl(keys.task('acme', record.id))).toBe(-1);
  });

  it('ignores a death that happened before the redrive', async () => {
    const { tasks, submit } = start();
    const { record } = await submit();
    const diedAt = Date.now();
    await tasks.markFailed('acme', record.id, { code: 'INTERNAL', message: 'x' }, diedAt);
    await new Promise((resolve) => setImmediate(resolve));
    await tasks.requeue('acme', record.id);
    expect(await tasks.markFailed('acme', record.id, { code: 'INTERNAL', message: 'x' }, diedAt - 1)).toBe('requeued');
    expect((await tasks.get('acme', record.id))?.state).toBe('queued');
  });

  it('does not requeue a cancelled or missing task', async () => {
    const { tasks, submit } = start();
    const { record } = await submit();
    await tasks.requestCancel('acme', record.id);
    expect(await tasks.requeue('acme', record.id)).toBe('cancelled');
    expect(await tasks.requeue('acme', 't00000000')).toBe('gone');
  });
});

describe('task ids', () => {
  it('ascend within one millisecond', () => {
    const ids = Array.from({ length: 5_000 }, () => newId('t'));
    expect(ids.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(ids);
    expect(ids.every((id) => /^t[0-9a-z]{8,40}$/.test(id))).toBe(true);
  });

  it('refuses keys without a tenant', () => {
    const { keys } = start();
    expect(() => keys.task('', 't1')).toThrow(expect.objectContaining({ code: 'TENANT_MISSING' }));
  });
});
