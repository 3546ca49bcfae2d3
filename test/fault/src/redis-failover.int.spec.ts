import { fileURLToPath } from 'node:url';
import { Consolidation, ConsolidationState } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Mode, Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { RedisGroup } from '@etude/test-support/redis-group';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { expect, it, onTestFinished } from 'vitest';
import { startModelGate } from './model-gate.js';

const AGENT = 'bridge';

async function callsOf({ modelUrl }: TestStack): Promise<readonly string[]> {
  const { calls } = (await (await fetch(`${modelUrl}/scripted/calls`)).json()) as { calls: Array<{ bodyDigest: string }> };
  return calls.map(({ bodyDigest }) => bodyDigest);
}

/** Repeats a call like a client until it succeeds. */
const repeated = <T>(what: string, call: () => Promise<T>) => until(() => call().catch(() => null), { what, everyMs: 100 });

it.each([
  ['sentinels replace', (servers: RedisGroup) => servers.watched({ outageMs: 2_000 }), 'etude'],
  ['a cluster replaces', (servers: RedisGroup) => servers.clustered(), '{etude}'],
] as const)(
  'ends each accepted task and consolidation once when %s a killed primary',
  { timeout: 300_000 },
  async (_what, start, prefix) => {
    const servers = new RedisGroup();
    onTestFinished(() => servers.stop());
    const { primary, replica, url } = await start(servers);
    const gate = await startModelGate();
    onTestFinished(() => gate.close());
    const stack = await startStack({
      script: fileURLToPath(new URL('./failover.yaml', import.meta.url)),
      env: {
        OPENAI_BASE_URL: `${gate.url}/v1`,
        ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside',
        ETUDE_REDIS_URL: `${url}?replicas=1`,
        ETUDE_QUEUE_PREFIX: prefix,
      },
    });
    onTestFinished(() => stack.stop());
    await stack.startRolloutWorker();
    const tasks = createServiceClient(Tasks, stack.address);
    const memory = createServiceClient(Memory, stack.address);
    const runs = createServiceClient(Consolidation, stack.address);
    onTestFinished(() => [tasks, memory, runs].forEach((client) => client.close()));
    let isOpen = true;
    gate.hold(stack.modelUrl, async () => isOpen);

    const evaluator = { kind: { case: 'pythonTests' as const, value: { entryPoint: 'square', tests: 'assert square(3) == 9' } } };
    const accepted = async (requestId: string) => {
      const spec = { prompt: `Write a function square(n). This is task ${requestId}.`, mode: Mode.INFERENCE, evaluator };
      return (await repeated(`the submit of ${requestId}`, () => tasks.submitTask({ spec, requestId }))).name;
    };
    const ended = async (name: string) => {
      const wait = () => tasks.waitTask({ name, timeout: { seconds: 120n } });
      return TaskState[(await repeated(`the end of ${name}`, wait)).state];
    };

    const names = await Promise.all([1, 2, 3].map((i) => accepted(`before-${i}`)));
    expect(await Promise.all(names.map(ended))).toEqual(names.map(() => 'SUCCEEDED'));

    isOpen = false;
    for (const when of ['noon', 'twelve'])
      await memory.storeEpisode({
        agent: AGENT,
        context: ['Cross the bridge'],
        actions: [`Went at ${when}`],
        reflection: `It opens at ${when}.`,
      });
    const { name: run } = await runs.runConsolidation({ agent: AGENT });
    await until(() => gate.waiting() === 1, { what: 'the consolidation asks the model' });
    names.push(...(await Promise.all([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((i) => accepted(`running-${i}`)))));
    await until(() => gate.waiting() >= 5, { what: 'tasks ask the model' });
    const submitting = Promise.all([1, 2, 3].flatMap((loader) => accepted(`during-${loader}`)));
    await primary.process.kill();
    const inFlight = gate.waiting();
    isOpen = true;
    // The new primary accepts nothing before it has a replica of its own.
    await servers.promoted(replica.port);
    names.push(...(await submitting), await accepted('after'));

    expect(new Set(names).size).toBe(17);
    expect(await Promise.all(names.map(ended))).toEqual(names.map(() => 'SUCCEEDED'));
    const done = () => runs.getConsolidationRun({ name: run }).then((now) => (now.state === ConsolidationState.DONE ? now : null));
    expect(await repeated('the end of the consolidation', done)).toMatchObject({ factsAdded: 1, modelFailures: 0, error: '' });
    expect((await memory.listMemory({ kind: 'fact', agent: AGENT })).records).toHaveLength(1);
    // 17 tasks and a consolidation ask once. Only a call in flight, whose answer could not be stored, is repeated, and only once.
    const calls = await callsOf(stack);
    expect(new Set(calls).size).toBe(18);
    expect(calls.length).toBeLessThanOrEqual(18 + inFlight);
    const times = [...new Set(calls)].map((digest) => calls.filter((call) => call === digest).length);
    expect(Math.max(...times)).toBeLessThanOrEqual(2);
    console.info(`${calls.length - 18} of ${inFlight} model calls in flight were made again`);
  },
);
