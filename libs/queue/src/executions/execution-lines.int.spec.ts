import { SandboxExecute } from '@etude/contracts/queues';
import { ExecutionRequest } from '@etude/contracts/sandbox';
import { CLEAN_RUN } from '@etude/domain/testing/run-results';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { never, startConsumer, startProducer } from '../../test/rig.js';
import { FIRST_LINE_MAX } from './execution-lines.js';
import { ExecutionStore, QueueSandboxes } from './executions.js';
import { oldestWaitingMs } from '../jobs/dead-letters.js';

const file = redisForFile();

/** A controller that runs one execution at a time. It starts after `open` is called. */
async function start() {
  const prefix = file.prefix();
  const { producer, redis, keys } = startProducer(file.url, prefix);
  const store = new ExecutionStore(redis, keys);
  const gate = Promise.withResolvers<void>();
  const taken: string[] = [];
  const consumer = startConsumer(
    SandboxExecute,
    async ({ tenant, executionId }) => {
      taken.push(executionId);
      await gate.promise;
      await store.save(tenant, executionId, { executionId, runs: [CLEAN_RUN] });
      return { executionId };
    },
    { redisUrl: file.url, prefix, concurrency: 1 },
  );
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
    const { send, taken, open, producer, queue } = await start();
    const asked = [...(await send('acme', named('acme', 30))), ...(await send('beta', ['beta-0']))];
    const { timestamp = 0 } = (await queue.getJob('acme-1')) ?? {};
    expect(await oldestWaitingMs(producer.redis, queue, timestamp + 5_000)).toBe(5_000);
    open();
    await Promise.all(asked);
    expect(taken.indexOf('beta-0')).toBe(FIRST_LINE_MAX);
    expect(taken.filter((id) => id.startsWith('acme'))).toEqual(named('acme', 30));
  });

  it('runs all executions of a busy tenant while others keep sending', async () => {
    const { execute, send, taken, open } = await start();
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
    const { execute, send, isFirst, taken, open, producer } = await start();
    const asked = await send('acme', named('acme', 6));
    asked.push(execute('acme', 'acme-5', new QueueSandboxes(producer)));
    await isFirst('acme-5');
    open();
    await Promise.all(asked);
    expect(taken).toEqual(['acme-0', 'acme-1', 'acme-2', 'acme-3', 'acme-5', 'acme-4']);
  });
});
