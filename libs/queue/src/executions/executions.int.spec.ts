import { EtudeError } from '@etude/contracts/errors';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { SandboxExecute } from '@etude/contracts/queues';
import { ExecutionRequest, type RunResult } from '@etude/contracts/sandbox';
import { CLEAN_RUN } from '@etude/domain/testing/run-results';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { never, queueForFile } from '../../test/rig.js';
import { watchCancel } from '../redis/channels.js';
import type { JobHandler } from '../jobs/consumer.js';
import { ExecutionStore, FIRST_LINE_MAX, QueueSandboxes } from './executions.js';
import { LeaseEnded } from '../jobs/job-end.js';
import { oldestWaitingMs } from '../jobs/dead-letters.js';

const startQueue = queueForFile();

const request = (executionId: string, stdin = '') =>
  ExecutionRequest.parse({ executionId, tenant: 'acme', limits: {}, runs: [{ kind: 'program', code: 'print(1)', stdin }] });
const run = (stdout: string): RunResult => ({ ...CLEAN_RUN, stdout });

/** A controller on this library: it loads, runs and saves. A cancelled execution ends without a result. */
async function start(execute: Sandboxes['execute']) {
  const { producer, redis, keys, startConsumer } = startQueue();
  const store = new ExecutionStore(redis, keys);
  const handler: JobHandler<typeof SandboxExecute.payload, typeof SandboxExecute.result> = async ({ tenant, executionId }, ctx) => {
    const stored = await store.load(tenant, executionId);
    if (!stored) throw new EtudeError('NOT_FOUND', `execution ${executionId} is no longer kept`);
    if (stored.result) return { executionId };
    const stop = new AbortController();
    const isCancelled = () => store.cancelRequested(tenant, executionId);
    using watching = watchCancel(redis, keys.cancelExecution(tenant, executionId), isCancelled, () => stop.abort());
    await watching.ready;
    try {
      await store.save(tenant, executionId, await execute(stored.request, AbortSignal.any([ctx.signal, stop.signal])));
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    }
    return { executionId };
  };
  await startConsumer(SandboxExecute, handler, { concurrency: 4 }).ready();
  return { sandboxes: new QueueSandboxes(producer), store, producer, redis, keys };
}

const nothing = () => {};
const untilAborted = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));

describe('sandboxes over the queue', () => {
  it('drops the files of a request once its result is final', async () => {
    const content = 'x'.repeat(1_000_000);
    const { sandboxes, redis, keys, store } = await start(async ({ executionId, files }) => ({
      executionId,
      runs: [run(String(files[0]?.contentBase64.length))],
    }));
    const asked = { ...request('use-1'), files: [{ path: 'data.txt', contentBase64: btoa(content) }] };
    const result = await sandboxes.execute(ExecutionRequest.parse(asked), never());
    expect(await redis.memory('USAGE', keys.execution('acme', 'use-1'))).toBeLessThan(10_000);
    expect(await store.load('acme', 'use-1')).toMatchObject({ result, request: { files: [] } });
    expect(await sandboxes.execute(ExecutionRequest.parse(asked), never())).toEqual(result);
  });

  it('runs an execution once for repeated requests', async () => {
    let runs = 0;
    const { sandboxes, producer } = await start(async ({ executionId }) => ({ executionId, runs: [run(String(++runs))] }));
    const asked = await Promise.all([
      sandboxes.execute(request('t00000000-r1.a1.execute'), never()),
      sandboxes.execute(request('t00000000-r1.a1.execute'), never()),
    ]);
    const later = await sandboxes.execute(request('t00000000-r1.a1.execute', 'another body'), never());
    await producer.forget(SandboxExecute.name, 't00000000-r1.a1.execute');
    const forgotten = await sandboxes.execute(request('t00000000-r1.a1.execute'), never());
    expect([...asked, later, forgotten].map((result) => result.runs[0]?.stdout)).toEqual(['1', '1', '1', '1']);
  });

  it('runs an execution whose earlier job found no request', async () => {
    const { sandboxes, producer } = await start(async ({ executionId }) => ({ executionId, runs: [run('ran')] }));
    const payload = { v: 1 as const, tenant: 'acme', executionId: 'use-2', taskId: null };
    await expect(producer.addAndWait(SandboxExecute, payload, never())).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect((await sandboxes.execute(request('use-2'), never())).runs[0]?.stdout).toBe('ran');
  });

  it('finds a result when its message was lost', async () => {
    const { producer, redis, keys, startConsumer } = startQueue();
    startConsumer(SandboxExecute, async ({ tenant, executionId }) => {
      await redis.hset(keys.execution(tenant, executionId), 'result', JSON.stringify({ executionId, runs: [run('silent')] }));
      return { executionId };
    });
    expect((await new QueueSandboxes(producer).execute(request('e1'), never())).runs[0]?.stdout).toBe('silent');
  });

  it('runs an execution again after a failure of the infrastructure', async () => {
    let runs = 0;
    const { sandboxes, store } = await start(async ({ executionId }) => ({
      executionId,
      runs: [{ ...run(String(++runs)), exit: runs === 1 ? ('evicted' as const) : ('ok' as const) }],
    }));
    const asked = async () => (await sandboxes.execute(request('e1'), never())).runs[0];
    expect(await asked()).toMatchObject({ exit: 'evicted', stdout: '1' });
    expect(await store.result('acme', 'e1')).toMatchObject({ runs: [{ exit: 'evicted' }] });
    expect(await asked()).toMatchObject({ exit: 'ok', stdout: '2' });
    expect(await asked()).toMatchObject({ exit: 'ok', stdout: '2' });
  });

  it('runs a cancelled execution again on request', async () => {
    let runs = 0;
    const { sandboxes } = await start(async ({ executionId }, signal) => {
      if (++runs === 1) await untilAborted(signal);
      signal.throwIfAborted();
      return { executionId, runs: [run('second')] };
    });
    const stop = new AbortController();
    const executing = sandboxes.execute(request('e1'), stop.signal);
    await until(() => runs === 1);
    stop.abort();
    await expect(executing).rejects.toMatchObject({ name: 'AbortError' });
    expect((await sandboxes.execute(request('e1'), never())).runs[0]?.stdout).toBe('second');
  });

  it('leaves an execution running when only its worker stops', async () => {
    let finish = nothing;
    let runs = 0;
    const { sandboxes } = await start(async ({ executionId }, signal) => {
      runs++;
      await new Promise<void>((resolve, reject) => {
        finish = resolve;
        signal.addEventListener('abort', () => reject(new Error('stopped')));
      });
      return { executionId, runs: [run('kept')] };
    });
    for (const lease of ['shutdown', 'lost'] as const) {
      const stop = new AbortController();
      const executing = sandboxes.execute(request('e1'), AbortSignal.any([stop.signal]));
      await until(() => runs === 1);
      stop.abort(new LeaseEnded(lease));
      await expect(executing).rejects.toMatchObject({ name: 'AbortError' });
    }
    const next = sandboxes.execute(request('e1'), never());
    finish();
    expect((await next).runs[0]?.stdout).toBe('kept');
    expect(runs).toBe(1);
  });
});

/** A controller that runs one execution at a time. It starts after `open` is called. */
async function startInLine() {
  const { producer, redis, keys, startConsumer } = startQueue();
  const store = new ExecutionStore(redis, keys);
  const gate = Promise.withResolvers<void>();
  const taken: string[] = [];
  const consumer = startConsumer(SandboxExecute, async ({ tenant, executionId }) => {
    taken.push(executionId);
    await gate.promise;
    await store.save(tenant, executionId, { executionId, runs: [CLEAN_RUN] });
    return { executionId };
  });
  await consumer.ready();
  const sandboxes = new QueueSandboxes(producer);
  const execute = (tenant: string, executionId: string, asker = sandboxes, signal = never()) =>
    asker.execute(ExecutionRequest.parse({ executionId, tenant, limits: {}, runs: [{ kind: 'program', code: '1' }] }), signal);
  const queue = producer.queue(SandboxExecute.name);
  const isAdded = (count: number) =>
    until(async () => (await queue.getJobCountByTypes('waiting', 'prioritized', 'active', 'completed')) === count);
  /** Sends the executions one after another. */
  const send = async (tenant: string, ids: readonly string[]) => {
    const asked: Array<Promise<unknown>> = [];
    for (const id of ids) {
      const before = await queue.getJobCountByTypes('waiting', 'prioritized', 'active', 'completed');
      asked.push(execute(tenant, id));
      await isAdded(before + 1);
    }
    return asked;
  };
  const isFirst = (id: string) => until(async () => (await queue.getJob(id))?.priority === 0);
  return { execute, send, isAdded, isFirst, taken, open: () => gate.resolve(), producer, queue };
}

const named = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

describe('executions of several tenants', () => {
  it('runs the first execution of a tenant before most of another tenant', async () => {
    const { send, taken, open, producer, queue } = await startInLine();
    const asked = [...(await send('acme', named('acme', 30))), ...(await send('beta', ['beta-0']))];
    const { timestamp = 0 } = (await queue.getJob('acme-1')) ?? {};
    expect(await oldestWaitingMs(producer, queue, timestamp + 5_000)).toBe(5_000);
    open();
    await Promise.all(asked);
    expect(taken.indexOf('beta-0')).toBe(FIRST_LINE_MAX);
    expect(taken.filter((id) => id.startsWith('acme'))).toEqual(named('acme', 30));
  });

  it('runs all executions of a busy tenant while others keep sending', async () => {
    const { execute, send, taken, open } = await startInLine();
    const asked = await send('acme', named('acme', 8));
    const enough = new AbortController();
    const endless = ['beta', 'gamma'].map(async (tenant) => {
      for (let i = 0; !enough.signal.aborted; i += 1)
        await Promise.all(named(`${tenant}-${i}`, FIRST_LINE_MAX / 2).map((id) => execute(tenant, id)));
    });
    open();
    await Promise.all(asked);
    enough.abort();
    await Promise.all(endless);
    expect(taken.filter((id) => id.startsWith('acme'))).toEqual(named('acme', 8));
  });

  it('moves an execution up when another process asks for it after its sender died', async () => {
    const { execute, send, isFirst, taken, open, producer } = await startInLine();
    const asked = await send('acme', named('acme', 6));
    asked.push(execute('acme', 'acme-5', new QueueSandboxes(producer)));
    await isFirst('acme-5');
    open();
    await Promise.all(asked);
    expect(taken).toEqual(['acme-0', 'acme-1', 'acme-2', 'acme-3', 'acme-5', 'acme-4']);
  });
});
