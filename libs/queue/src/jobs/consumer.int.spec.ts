import { EtudeError } from '@etude/contracts/errors';
import { PAYLOAD_MAX_BYTES } from '@etude/contracts/queues';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { never, queueForFile } from '../../test/rig.js';
import { consume } from './consumer.js';
import type { JobContext } from './consumer.js';
import { leaseEndOf, readFailure } from './job-end.js';

const startQueue = queueForFile();

const payload = z.strictObject({ v: z.literal(1), id: z.string(), text: z.string().default('') });
const result = z.strictObject({ text: z.string() });
const Echo: QueueDeclaration<typeof payload, typeof result> = {
  name: 'test.echo',
  payload,
  result,
  jobId: ({ id }) => id,
  attemptsMax: 2,
  backoffMs: 10,
  timeoutMs: 60_000,
};

function start(declaration = Echo) {
  const rig = startQueue();
  const { producer } = rig;
  const queue = producer.queue(declaration.name);
  return {
    ...rig,
    queue,
    dead: () => until(async () => (await queue.getFailed())[0]),
    ask: (id: string, text = '') => producer.addAndWait(declaration, { v: 1, id, text }, never()),
  };
}

const nothing = () => {};

/** Rejects with the abort reason once the job's signal aborts. */
const untilStopped = ({ signal }: JobContext) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

describe('add and wait', () => {
  it('answers a repeat with the first result', async () => {
    const { startConsumer, ask } = start();
    let runs = 0;
    startConsumer(Echo, async () => ({ text: String(++runs) }));
    expect([await ask('j1'), await ask('j1')]).toEqual([{ text: '1' }, { text: '1' }]);
    expect(await Promise.all([ask('j2'), ask('j2'), ask('j2')])).toEqual(['2', '2', '2'].map((text) => ({ text })));
  });

  it('rejects with the error that the job died of', async () => {
    const { startConsumer, ask } = start();
    startConsumer(Echo, () => Promise.reject(new EtudeError('SANDBOX_CONTROL_MISSING', 'no bubblewrap', { field: 'x.y' })));
    await expect(ask('j1')).rejects.toMatchObject({ code: 'SANDBOX_CONTROL_MISSING', message: 'no bubblewrap', details: { field: 'x.y' } });
    await expect(ask('j1')).rejects.toMatchObject({ code: 'SANDBOX_CONTROL_MISSING' });
  });

  it('runs a job again that died of a retryable error', async () => {
    const { startConsumer, ask } = start();
    let runs = 0;
    startConsumer(Echo, async () => {
      if (++runs <= Echo.attemptsMax) throw new EtudeError('SANDBOX_UNAVAILABLE', 'not yet');
      return { text: 'at last' };
    });
    await expect(ask('j1')).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    expect(await ask('j1')).toEqual({ text: 'at last' });
  });

  it('rejects with AbortError when the caller aborts', async () => {
    const { producer } = start();
    const stop = new AbortController();
    const waiting = producer.addAndWait(Echo, { v: 1, id: 'j1', text: '' }, stop.signal);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('adding', () => {
  it.each([
    ['does not parse', { id: 7 }, { code: 'JOB_PAYLOAD_INVALID', details: { field: 'id' } }],
    ['is too big for a queue', { id: 'big', text: 'x'.repeat(PAYLOAD_MAX_BYTES) }, { code: 'PAYLOAD_TOO_LARGE' }],
  ])('refuses a payload that %s', async (_what, wrong, error) => {
    await expect(start().producer.add(Echo, { v: 1, text: '', ...wrong } as never)).rejects.toMatchObject(error);
  });
});

describe('consume', () => {
  it('makes a job a dead letter at once when its payload does not parse', async () => {
    const { startConsumer, queue, dead } = start();
    startConsumer(Echo, async () => ({ text: '' }));
    await queue.add(Echo.name, { v: 1, id: 7 }, { jobId: 'bad', attempts: 5 });
    const { failedReason, attemptsMade } = await dead();
    expect(readFailure(failedReason)).toEqual({ code: 'JOB_PAYLOAD_INVALID', message: expect.stringContaining('string'), path: 'id' });
    expect(attemptsMade).toBe(1);
  });

  it('retries a retryable error up to the declared attempts', async () => {
    const { producer, startConsumer, dead } = start();
    const seen: Array<[number, boolean]> = [];
    startConsumer(Echo, async (_, { attempt, isLastAttempt }) => {
      seen.push([attempt, isLastAttempt]);
      throw new EtudeError('MODEL_UNAVAILABLE', 'down');
    });
    await producer.add(Echo, { v: 1, id: 'j1', text: '' });
    await dead();
    expect(seen).toEqual([
      [1, false],
      [2, true],
    ]);
  });

  it('counts no attempt when Redis refuses what the job stores', async () => {
    const { startConsumer, ask, queue } = start();
    let runs = 0;
    const handler = async () => {
      if (++runs <= Echo.attemptsMax) throw new EtudeError('QUEUE_UNAVAILABLE', 'OOM command not allowed');
      return { text: String(runs) };
    };
    startConsumer(Echo, handler);
    expect(await ask('j1')).toEqual({ text: String(Echo.attemptsMax + 1) });
    expect((await queue.getJob('j1'))?.attemptsMade).toBe(1);
  });

  it('refuses a result that does not match its schema', async () => {
    const { startConsumer, ask } = start();
    startConsumer(Echo, async () => ({ text: 7 }) as never);
    await expect(ask('j1')).rejects.toMatchObject({ code: 'INTERNAL', details: { field: 'text' } });
  });

  it('aborts a job that runs longer than its timeout', async () => {
    const brief = { ...Echo, timeoutMs: 50 };
    const { startConsumer, ask } = start(brief);
    startConsumer(brief, (_, ctx) => untilStopped(ctx));
    await expect(ask('j1')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
  });

  it('returns running jobs to the queue at once on shutdown', async () => {
    for (const priority of [undefined, 3]) {
      const { producer, options: plain, queue, startConsumer } = start();
      // The lock outlasts this test.
      const options = { ...plain, lockMs: 600_000 };
      let lease: string | null = null;
      let running = false;
      const first = consume(
        Echo,
        async (_, ctx) => {
          running = true;
          return untilStopped(ctx).finally(() => (lease = leaseEndOf(ctx.signal)));
        },
        options,
      );
      await producer.add(Echo, { v: 1, id: 'j1', text: '' }, { priority });
      await until(() => running);
      const attempts: number[] = [];
      const second = startConsumer(Echo, async (_, { attempt }) => ({ text: String(attempts.push(attempt)) }), options);
      await second.ready();
      await first.close(600_000);
      await until(async () => (await queue.getCompletedCount()) === 1);
      expect([lease, attempts]).toEqual(['shutdown', [1]]);
    }
  });

  it('lets running jobs end or hand over while it drains', async () => {
    const { producer, options: plain, queue, startConsumer } = start();
    const options = { ...plain, concurrency: 2, lockMs: 600_000 };
    const ran: string[] = [];
    const first = consume(
      Echo,
      async ({ id }, { draining, signal }) => {
        ran.push(id);
        await new Promise((resolve) => draining.addEventListener('abort', resolve));
        expect(signal.aborted).toBe(false);
        if (id === 'handed') throw draining.reason;
        return { text: 'first' };
      },
      options,
    );
    for (const id of ['ended', 'handed']) await producer.add(Echo, { v: 1, id, text: '' });
    await until(() => ran.length === 2);
    await first.drain(600_000);
    await first.close(600_000);
    expect([await queue.getCompletedCount(), await queue.getWaitingCount(), await queue.getFailedCount()]).toEqual([1, 1, 0]);
    startConsumer(Echo, async (_, { attempt }) => ({ text: `second ${attempt}` }), options);
    await until(async () => (await queue.getCompletedCount()) === 2);
    expect((await queue.getJob('handed'))?.returnvalue).toEqual({ text: 'second 1' });
  });

  it('keeps the lock of a job that runs much longer than one lock period', async () => {
    const { producer, startConsumer, queue } = start();
    let runs = 0;
    let finish = nothing;
    startConsumer(
      Echo,
      async () => {
        runs++;
        await new Promise<void>((resolve) => (finish = resolve));
        return { text: '' };
      },
      // A shorter lock could expire on a busy machine.
      { lockMs: 2_000, stalledCheckMs: 500 },
    );
    await producer.add(Echo, { v: 1, id: 'j1', text: '' });
    await until(() => runs === 1);
    const checks = new Set<string | null>();
    await until(async () => checks.add(await producer.redis.get(queue.toKey('stalled-check'))).size > 6);
    expect(runs).toBe(1);
    finish();
  });

  // With the long lock, the worker fetches its own running job again, at its second place, before it renews the lock.
  it.each([300, 600_000])('aborts a run whose lock of %i ms was lost and runs the job again', async (lockMs) => {
    const { producer, startConsumer, queue } = start();
    const leases: Array<string | null> = [];
    let runs = 0;
    startConsumer(
      Echo,
      async (_, ctx) => {
        if (runs++ > 0) return { text: 'second run' };
        return untilStopped(ctx).finally(() => leases.push(leaseEndOf(ctx.signal)));
      },
      { concurrency: 2, lockMs, stalledCheckMs: 100 },
    );
    const waiting = producer.addAndWait(Echo, { v: 1, id: 'j1', text: '' }, never());
    await until(async () => (await producer.redis.del(queue.toKey('j1:lock'))) === 1);
    expect(await waiting).toEqual({ text: 'second run' });
    expect(leases).toEqual(['lost']);
  });

  it('makes a job a dead letter when it ends its workers, and a redrive resets the count', async () => {
    const Fragile = { ...Echo, workersLostMax: 1 };
    const { producer, startConsumer, queue, ask } = start(Fragile);
    let lost = 0;
    const runs: Array<number | undefined> = [];
    startConsumer(
      Fragile,
      async (_, ctx) => {
        runs.push((await queue.getJob(ctx.jobId))?.stalledCounter);
        if (lost >= 2) return { text: 'survived' };
        await producer.redis.del(queue.toKey(`${ctx.jobId}:lock`));
        return untilStopped(ctx).finally(() => lost++);
      },
      { lockMs: 300, stalledCheckMs: 100 },
    );
    const message = expect.stringContaining('2 workers died while they ran test.echo job j1');
    await expect(ask('j1')).rejects.toMatchObject({ code: 'WORKER_LOST', message });
    expect(runs).toEqual([0, 1]);
    expect(await ask('j1')).toEqual({ text: 'survived' });
    expect(runs).toEqual([0, 1, 0]);
  });
});
