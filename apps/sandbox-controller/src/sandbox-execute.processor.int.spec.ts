import { EtudeError } from '@etude/contracts/errors';
import { SandboxExecute } from '@etude/contracts/queues';
import { ExecutionRequest, type ExecutionResult } from '@etude/contracts/sandbox';
import { consume } from '@etude/queue/jobs/consumer';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { Producer } from '@etude/queue/jobs/producer';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runResult } from '../test/fake-driver.js';
import { sandboxExecuteProcessor } from './sandbox-execute.processor.js';

const redis = redisForFile();

const request = ExecutionRequest.parse({ executionId: 'e1', tenant: 'acme', limits: {}, runs: [{ kind: 'program', code: '' }] });
const never = () => new AbortController().signal;

/** A queue and a processor over fake sandboxes. Each try of an execution gets the next scripted result. */
async function start(tries: ReadonlyArray<() => ExecutionResult['runs']>) {
  const prefix = redis.prefix();
  const producer = new Producer(redis.url, prefix);
  let tried = 0;
  const sandboxes = {
    execute: async ({ executionId }: ExecutionRequest) => {
      const next = tries[tried++];
      if (!next) throw new Error('it was tried more often than expected');
      return { executionId, runs: next() };
    },
  };
  const consumer = consume(SandboxExecute, sandboxExecuteProcessor(sandboxes, producer), { redisUrl: redis.url, prefix, concurrency: 1 });
  onTestFinished(async () => {
    await consumer.close(1_000);
    await producer.close();
  });
  return { execute: () => new QueueSandboxes(producer).execute(request, never()), tried: () => tried };
}

const evicted = (stdout: string) => () => [runResult({ exit: 'evicted', stdout })];
const refused = (exit?: string) => () => {
  throw new EtudeError('SANDBOX_CAPACITY', 'the quota is full', exit ? { metadata: { exit } } : {});
};

describe('an execution whose sandbox fails', () => {
  it('is retried and returns the result of the code', async () => {
    const { execute, tried } = await start([evicted('half'), refused('capacity'), () => [runResult({ stdout: 'whole' })]]);
    expect((await execute()).runs).toMatchObject([{ exit: 'ok', stdout: 'whole' }]);
    expect(tried()).toBe(3);
  });

  it('reports the exit reason and the output after the last attempt', async () => {
    const { execute, tried } = await start([evicted('a'), evicted('b'), evicted('c')]);
    expect((await execute()).runs).toMatchObject([{ exit: 'evicted', stdout: 'c' }]);
    expect(tried()).toBe(3);
  });

  it('is not retried when its code is at fault', async () => {
    const { execute, tried } = await start([() => [runResult({ exit: 'kernel_lost' })]]);
    expect((await execute()).runs).toMatchObject([{ exit: 'kernel_lost' }]);
    expect(tried()).toBe(1);
  });

  it('reports why it got no sandbox', async () => {
    const { execute } = await start([refused('capacity'), refused('capacity'), refused('image_pull')]);
    expect((await execute()).runs).toMatchObject([
      { exit: 'image_pull', error: { type: 'SandboxUnavailable', message: 'the quota is full' } },
    ]);
  });

  it('fails when its job becomes a dead letter', async () => {
    const { execute } = await start([refused(), refused(), refused()]);
    await expect(execute()).rejects.toMatchObject({ code: 'SANDBOX_CAPACITY' });
  });
});
