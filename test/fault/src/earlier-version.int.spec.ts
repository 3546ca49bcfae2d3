import { fileURLToPath } from 'node:url';
import { Consolidation, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { openMemory } from '@etude/memory/open-memory';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import { connectRedis } from '@etude/queue/redis/redis';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KEYS, TENANT } from './observed.js';

/**
 * Redis as version 0.1.0 left it when all its processes were killed. It has a rollout after its first, wrong attempt, whose transition had
 * not reached memory; two waiting tasks, one of them for an agent in steps; and a requested consolidation.
 */
const LEFT = fileURLToPath(new URL('../data/version-0.1.0', import.meta.url));
const [HALF, WAITING, STEPS] = ['t0mx0b65d8000oo8t94jm4e', 't0mx0b66i3000kyan03d9j0', 't0mx0b66j5000cy8urvyvmt'];
const RUN = 'consolidationRuns/c0mx0b66jh0001g0woxv6tg';

let stack: TestStack;
beforeAll(async () => {
  stack = await startStack({
    script: fileURLToPath(new URL('./kill-steps.yaml', import.meta.url)),
    env: { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
    data: { redis: LEFT },
  });
  // Otherwise the old rollout would be over its wall time of ten minutes.
  const redis = connectRedis(stack.redis.url, 'producer');
  await redis.hset(KEYS.rollout(`${HALF}-r1`), 'startedAt', Date.now());
  redis.disconnect();
  await stack.startRolloutWorker();
});
afterAll(() => stack.stop());

async function answeredRules(): Promise<string[]> {
  const { calls } = (await (await fetch(`${stack.modelUrl}/scripted/calls`)).json()) as { calls: Array<{ rule: string }> };
  return calls.map(({ rule }) => rule);
}

it('runs what an earlier version accepted to its end, and does nothing again that was done', async () => {
  const tasks = createServiceClient(Tasks, stack.address);
  const runs = createServiceClient(Consolidation, stack.address);
  try {
    for (const id of [HALF, WAITING, STEPS]) {
      const task = await tasks.waitTask({ name: `tasks/${id}`, timeout: { seconds: 100n }, learning: true });
      expect([id, TaskState[task.state], task.usage?.attempts]).toEqual([id, 'SUCCEEDED', 2]);
    }
    // Three tasks need two attempts each. Only the task with a finished first attempt doesn't repeat that attempt.
    const rules = await answeredRules();
    expect(rules.filter((rule) => rule === 'first')).toHaveLength(1);
    expect(rules.filter((rule) => rule === 'second')).toHaveLength(2);
    const done = async () => (await runs.getConsolidationRun({ name: RUN })).state === ConsolidationState.DONE;
    await until(done, { what: 'the consolidation that was requested before' });
    // No task was made twice.
    const { tasks: listed } = await tasks.listTasks({});
    expect(listed.map(({ name }) => name).toSorted()).toEqual([HALF, WAITING, STEPS].map((id) => `tasks/${id}`).toSorted());
  } finally {
    tasks.close();
    runs.close();
  }
  const embedder = await embedderFrom(embedderConfig.parse({ ETUDE_EMBEDDER: 'lexical' }));
  const memory = await openMemory({ store: { adapter: 'sqlite', path: stack.memoryPath }, embedder });
  const attempts = async () => await memory.episodic.transitions({ tenant: TENANT, agent: 'half' }, `${HALF}-r1`);
  const stored = await until(async () => ((await attempts()).length === 2 ? attempts() : null), { what: 'both transitions in memory' });
  expect(stored.map(({ attempt }) => attempt)).toEqual([1, 2]);
  await memory.close();
});
