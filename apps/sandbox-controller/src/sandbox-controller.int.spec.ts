import { createServer } from 'node:net';
import { SandboxExecute } from '@etude/contracts/queues';
import { SandboxLimits, type ExecutionRequest } from '@etude/contracts/sandbox';
import { repeatsConformance, sandboxesConformance } from '@etude/domain/testing/sandboxes-conformance';
import { QueueSandboxes } from '@etude/queue/executions/executions';
import { Producer } from '@etude/queue/jobs/producer';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { until } from '@etude/test-support/until';
import { describe, expect, it, onTestFinished } from 'vitest';
import { sandboxControllerConfig } from './sandbox-controller.config.js';
import { startSandboxController } from './sandbox-controller.js';

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const never = () => new AbortController().signal;

const request = (executionId: string, code: string, more: Partial<ExecutionRequest> = {}): ExecutionRequest => ({
  executionId,
  tenant: 'acme',
  files: [],
  limits: SandboxLimits.parse({}),
  stopOnFailure: false,
  runs: [{ kind: 'program', code, stdin: '' }],
  ...more,
});

describe('the sandbox controller', () => {
  const redis = redisForFile();

  const startOne = (prefix: string, more: Readonly<Record<string, string>> = {}) =>
    startSandboxController(
      sandboxControllerConfig.parse({ ETUDE_REDIS_URL: redis.url, ETUDE_QUEUE_PREFIX: prefix, ETUDE_SANDBOX_WARM: '1', ...more }),
      silent,
    );

  async function start() {
    const prefix = redis.prefix();
    const controller = await startOne(prefix);
    const producer = new Producer(redis.url, prefix);
    const close = async () => {
      await controller.close();
      await producer.close();
    };
    const active = () => producer.queue(SandboxExecute.name).getActiveCount();
    const taken = () => until(active, { what: 'an execution that was taken' });
    const ended = () => until(async () => (await active()) === 0, { what: 'the end of every execution' });
    return { prefix, controller, sandboxes: new QueueSandboxes(producer), taken, ended, close };
  }

  sandboxesConformance(start);
  repeatsConformance(start);

  it('is ready and says so if its sandboxes have to share a user', async () => {
    const other = createServer().listen({ path: '\0etude-sandbox-users-2099999999' });
    const controller = await startOne(redis.prefix(), { ETUDE_SANDBOX_UIDS: '2099999999:1' });
    onTestFinished(async () => {
      other.close();
      await controller.close();
    });
    await expect(controller.checks()['sandboxes']?.()).resolves.toMatch(/run as one user of this machine.*set ETUDE_SANDBOX_UIDS/);
  });

  it('stops the code when its execution is cancelled', async () => {
    const { sandboxes, taken, ended, close } = await start();
    onTestFinished(close);
    const stop = new AbortController();
    const running = sandboxes.execute(request('endless', 'while True: pass'), stop.signal);
    await taken();
    stop.abort();
    await expect(running).rejects.toMatchObject({ name: 'AbortError' });
    // The limits of the execution would end it much later.
    await ended();
  });

  it('hands a running execution to another controller when it closes', async () => {
    const { prefix, controller, sandboxes, taken, close } = await start();
    const code = 'import time\ntime.sleep(1)\nprint("done")';
    const running = sandboxes.execute(request('moved', code), never());
    await taken();
    const other = await startOne(prefix);
    onTestFinished(async () => {
      await other.close();
      await close();
    });
    await controller.close();
    expect((await running).runs[0]).toMatchObject({ exit: 'ok', stdout: 'done\n' });
  });
});
