import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Sandboxes, SandboxState } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import type { ServiceError } from '@grpc/grpc-js';
import { decodeStatus } from '@etude/contracts/rich-status';
import { connectRedis } from '@etude/queue/redis/redis';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ModelGate, startModelGate } from './model-gate.js';

const HOUR_MS = 3_600_000;

let dir: string;
let gate: ModelGate;
let stack: TestStack;
let tasks: ReturnType<typeof createServiceClient<typeof Tasks>>;
const shiftClocks = (ms: number) => writeFileSync(join(dir, 'clock'), String(ms));

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'etude-hard-times-'));
  shiftClocks(0);
  gate = await startModelGate();
  const clock = { NODE_OPTIONS: `--import=${new URL('./shifted-clock.mjs', import.meta.url).href}`, ETUDE_TEST_CLOCK: join(dir, 'clock') };
  stack = await startStack({
    script: fileURLToPath(new URL('../../../sdks/python/tests/model.yaml', import.meta.url)),
    env: { OPENAI_BASE_URL: `${gate.url}/v1`, ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside', ...clock },
  });
  await stack.startRolloutWorker();
  tasks = createServiceClient(Tasks, stack.address);
});
afterAll(async () => {
  tasks.close();
  await stack.stop();
  await gate.close();
  rmSync(dir, { recursive: true, force: true });
});

const evaluator = { kind: { case: 'pythonTests' as const, value: { entryPoint: 'square', tests: 'assert square(3) == 9' } } };
const submit = (requestId: string) => tasks.submitTask({ spec: { prompt: 'Write a function square(n).', evaluator }, requestId });
const stateOf = async (name: string) => TaskState[(await tasks.waitTask({ name, timeout: { seconds: 60n } })).state];

describe('clocks of all services that jump', () => {
  it.each([HOUR_MS, -HOUR_MS])('by %i ms while a task waits for its model: task, memory and sandbox go on', async (shift) => {
    const [memory, sandboxes] = [createServiceClient(Memory, stack.address), createServiceClient(Sandboxes, stack.address)];
    let isOpen = false;
    let asked = false;
    gate.hold(stack.modelUrl, async () => {
      asked = true;
      return isOpen;
    });
    const { name: sandbox } = await sandboxes.createSandbox({ ttl: { seconds: 600n } });
    const { name } = await submit(`clock${shift > 0 ? '-ahead' : '-back'}`);
    await until(() => asked, { what: 'the model is asked' });
    shiftClocks(shift);
    isOpen = true;
    expect(await stateOf(name)).toBe('SUCCEEDED');
    expect(await stateOf((await submit(`next${shift > 0 ? '-ahead' : '-back'}`)).name)).toBe('SUCCEEDED');
    await memory.storeFact({ agent: 'clock', text: `The clock jumped by ${shift}.` });
    expect((await sandboxes.getSandbox({ name: sandbox })).state).toBe(SandboxState.OPEN);
    shiftClocks(0);
    expect(await stateOf((await submit(`after${shift > 0 ? '-ahead' : '-back'}`)).name)).toBe('SUCCEEDED');
    memory.close();
    sandboxes.close();
  });
});

describe('a Redis that is full', () => {
  it('refuses tasks with the reason, loses none that it took, and takes tasks again once it has room', async () => {
    gate.hold(stack.modelUrl, async () => true);
    const redis = connectRedis(stack.redis.url, 'producer');
    const taken = await submit('before');
    await redis.config('SET', 'maxmemory', '1mb');
    const refused = (await submit('refused').catch((error: unknown) => error)) as ServiceError;
    expect(decodeStatus(refused.metadata)).toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    expect(refused.message).toMatch(/full|memory/i);
    await redis.config('SET', 'maxmemory', '0');
    expect(await stateOf(taken.name)).toBe('SUCCEEDED');
    expect(await stateOf((await submit('refused')).name)).toBe('SUCCEEDED');
    redis.disconnect();
  });
});
