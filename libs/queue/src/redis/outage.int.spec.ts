import { SandboxExecute } from '@etude/contracts/queues';
import { ExecutionRequest } from '@etude/contracts/sandbox';
import { Usage } from '@etude/contracts/task';
import { freePort } from '@etude/test-support/ports';
import { startRedis } from '@etude/test-support/redis';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { never, SOLVED, SPEC, startProducer, WRITE } from '../../test/rig.js';
import { consume, type JobHandler } from '../jobs/consumer.js';
import { readEvents } from '../tasks/events.js';
import { ExecutionStore, QueueSandboxes } from '../executions/executions.js';
import { OutboxReader, RedisMemoryOutbox } from '../memory/memory-outbox.js';
import { Producer } from '../jobs/producer.js';
import { channelsOf } from './channels.js';
import { connectRedis, whileRedisAnswers } from './redis.js';
import type { QueueLogger } from './redis.js';
import { TaskStore } from '../tasks/task-store.js';

function recordingLogger(): QueueLogger & { readonly lines: string[] } {
  const lines: string[] = [];
  const log = (_: object, message: string) => void lines.push(message);
  return { lines, info: log, warn: log, error: log };
}

async function startStoppable() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  return server;
}

describe('an outage of Redis', () => {
  it('fails a submit when Redis was never reachable', async () => {
    const port = await freePort();
    const producer = new Producer(`redis://:secret@127.0.0.1:${port}`, 'etude');
    onTestFinished(() => producer.close());
    const refused = await new TaskStore(producer).submit('acme', SPEC, '').catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: 'QUEUE_UNAVAILABLE',
      message: expect.stringContaining(`127.0.0.1:${port}`),
      details: { retryAfterMs: 1_000 },
    });
    expect((refused as Error).message).not.toContain('secret');
    await expect(
      producer.addAndWait(SandboxExecute, { v: 1, tenant: 'acme', executionId: 'e1', taskId: null }, never()),
    ).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
  });

  it('ends the drain of a closing worker', async () => {
    const server = await startStoppable();
    const { producer, options } = startProducer(server.url, 'etude');
    const runs: AbortSignal[] = [];
    const hangs: JobHandler<typeof SandboxExecute.payload, typeof SandboxExecute.result> = (_, { signal }) => {
      runs.push(signal);
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    };
    const consumer = consume(SandboxExecute, hangs, options);
    await producer.add(SandboxExecute, { v: 1, tenant: 'acme', executionId: 'e1', taskId: null });
    await until(() => runs.length === 1);
    const drained = consumer.drain(600_000);
    await server.pause();
    await drained;
    expect(runs[0]?.aborted).toBe(false);
    await consumer.close(100);
    expect(runs[0]?.aborted).toBe(true);
  });

  it('keeps accepted tasks and recovers without a restart', async () => {
    const server = await startStoppable();
    const logger = recordingLogger();
    const { producer, tasks, startConsumer } = startProducer(server.url, 'etude');
    const consumer = startConsumer(SandboxExecute, async ({ executionId }) => ({ executionId }), { logger });
    await consumer.ready();
    const ask = (id: string) => producer.addAndWait(SandboxExecute, { v: 1, tenant: 'acme', executionId: id, taskId: null }, never());
    await ask('before');
    const { record } = await tasks.submit('acme', SPEC, 'r1');
    await server.pause();
    await expect(tasks.submit('acme', SPEC, 'r2')).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    await expect(consumer.check()).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    await server.resume();
    await until(async () => (await tasks.get('acme', record.id).catch(() => null))?.id === record.id);
    expect((await tasks.submit('acme', SPEC, 'r1')).created).toBe(false);
    expect(await ask('after')).toEqual({ executionId: 'after' });
    expect(logger.lines).toEqual(['Redis is away; reconnecting', 'Redis is back']);
  });

  it('ends a subscription to a server that hangs, and tells its listeners', async () => {
    const server = await startStoppable();
    const redis = connectRedis(server.url, 'producer').duplicate({ socketTimeout: 200 });
    redis.on('error', () => undefined);
    onTestFinished(() => redis.disconnect());
    const heard: Array<string | null> = [];
    using listening = channelsOf(redis).listen('calls', (message) => void heard.push(message));
    await listening.ready;
    heard.length = 0;
    process.kill(server.pid, 'SIGSTOP');
    redis.ping().catch(() => undefined);
    // The subscription takes up to two timeouts to end. Each close of this connection takes one timeout.
    for (let closed = 0; closed < 4; closed += 1) await new Promise((resolve) => redis.once('close', resolve));
    process.kill(server.pid, 'SIGCONT');
    await until(() => heard.length > 0);
    expect(heard).toEqual([null]);
  });

  it('returns the result of an execution across a restart', async () => {
    const server = await startStoppable();
    const { producer, redis, keys, startConsumer } = startProducer(server.url, 'etude');
    const request = ExecutionRequest.parse({ executionId: 'e1', tenant: 'acme', limits: {}, runs: [{ kind: 'program', code: '' }] });
    const waiting = new QueueSandboxes(producer).execute(request, never());
    await until(async () => (await producer.queue(SandboxExecute.name).getWaitingCount()) === 1);
    await server.pause();
    await server.resume();
    startConsumer(SandboxExecute, async ({ tenant, executionId }) => {
      await new ExecutionStore(redis, keys).save(tenant, executionId, { executionId, runs: [] });
      return { executionId };
    });
    expect(await waiting).toEqual({ executionId: 'e1', runs: [] });
  });

  it('makes a patient producer wait until Redis is back', async () => {
    const server = await startStoppable();
    await server.pause();
    const producer = new Producer(server.url, 'etude', undefined, { patient: true });
    onTestFinished(() => producer.close());
    const putting = new RedisMemoryOutbox(producer).put('acme', 'w1', WRITE);
    await server.resume();
    await putting;
    expect(await new OutboxReader(producer.redis, producer.keys).load('acme', 'w1')).toEqual(WRITE);
  });

  it('continues the journal after the outage, and watchers see its events', async () => {
    const server = await startStoppable();
    const { submit, redis, keys } = startProducer(server.url, 'etude');
    const worker = connectRedis(server.url, 'worker');
    onTestFinished(() => worker.disconnect());
    const { record, open } = await submit();
    const journal = await open(worker);
    const usage = Usage.parse({});
    await journal?.append({ key: 'a1.one', value: 1, usage }, [{ type: 'attempt_started', attempt: 1 }]);
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { event } of readEvents(worker, keys, { tenant: 'acme', taskId: record.id, afterId: null }, never()))
        seen.push(event.type);
    })();
    await until(() => seen.length === 3);
    await server.pause();
    const appending = journal?.append({ key: 'a1.two', value: 2, usage }, [{ type: 'attempt_started', attempt: 2 }]);
    await server.resume();
    await appending;
    await journal?.finish({ ...SOLVED, usage });
    await watching;
    expect(seen).toEqual(['state', 'state', 'attempt_started', 'attempt_started', 'state', 'finished']);
    await until(async () => (await redis.ping().catch(() => '')) === 'PONG');
  });

  it('refuses a single write and a whole transaction alike while it is full', async () => {
    const server = await startStoppable();
    const { redis } = startProducer(server.url, 'etude');
    await redis.config('SET', 'maxmemory', '1');
    const writes = [redis.set('a', '1'), redis.multi().set('a', '1').set('b', '1').exec()];
    for (const write of writes) await expect(whileRedisAnswers<unknown>(redis, write)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
  });
});
