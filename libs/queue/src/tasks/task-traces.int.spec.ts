import { MemoryWriteJob, RolloutRun } from '@etude/contracts/queues';
import { UNTRACED } from '@etude/contracts/tracing';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { expect, it, onTestFinished } from 'vitest';
import { SPEC, WRITE } from '../../test/rig.js';
import { reconcileWork } from '../jobs/durable-work.js';
import { Producer } from '../jobs/producer.js';
import { memoryWrites, RedisMemoryOutbox } from '../memory/memory-outbox.js';
import { TaskStore } from './task-store.js';

const CURRENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const file = redisForFile();
const ignore = () => undefined;

/** A producer within a span, a producer outside of any span, and the lines that the two log. */
function start() {
  const prefix = file.prefix();
  const lines: object[] = [];
  const logger = { info: (line: object) => void lines.push(line), warn: ignore, error: ignore };
  const traced = new Producer(file.url, prefix, logger, { tracing: { ...UNTRACED, current: CURRENT } });
  const other = new Producer(file.url, prefix, logger);
  onTestFinished(() => Promise.all([traced.close(), other.close()]).then(ignore));
  return { traced, other, lines };
}

const fail = (error: unknown) => {
  throw error;
};

it('names the trace in a job, also one that is added again', async () => {
  const { traced, other } = start();
  const { record } = await new TaskStore(traced).submit('acme', SPEC, '');
  await new RedisMemoryOutbox(traced).put('acme', 'w1', WRITE);
  for (const [queue, id, work] of [
    [RolloutRun.name, `${record.id}-r1`, new TaskStore(other).work],
    [MemoryWriteJob.name, 'w1', memoryWrites(other)],
  ] as const) {
    const traceOf = async () => (await other.queue(queue).getJob(id))?.opts.telemetry?.metadata;
    expect(await traceOf()).toBe(CURRENT);
    await (await other.queue(queue).getJob(id))?.remove();
    expect(await reconcileWork(other, work, Date.now() + 60_000, fail)).toBe(1);
    expect(await traceOf()).toBe(CURRENT);
  }
});

it('logs each state of a task with its tenant and its own trace', async () => {
  const { traced, other, lines } = start();
  const submit = async () => (await new TaskStore(traced).submit('acme', SPEC, '')).record.id;
  const [cancelled, failed] = [await submit(), await submit()];
  await new TaskStore(other).requestCancel('acme', cancelled);
  await new TaskStore(other).markFailed('acme', failed, { code: 'WORKER_LOST', message: 'm' }, Date.now());
  await new TaskStore(other).requeue('acme', failed);
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const line = (taskId: string, state: string, more = {}) => ({ tenant: 'acme', taskId, state, traceId, ...more });
  expect(lines).toEqual([
    line(cancelled, 'queued'),
    line(failed, 'queued'),
    line(cancelled, 'cancelled'),
    line(failed, 'failed', { errorCode: 'WORKER_LOST' }),
    line(failed, 'queued'),
  ]);
});
