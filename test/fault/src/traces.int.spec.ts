import { fileURLToPath } from 'node:url';
import { Consolidation } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Mode, Tasks, TaskState, type Task } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { type CollectedSpan, startCollector } from '@etude/test-support/collector';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ModelGate, startModelGate } from './model-gate.js';
import { journalOf } from './observed.js';

const SCRIPT = fileURLToPath(new URL('./kill-steps.yaml', import.meta.url));
const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', id: 'b7ad6b7169203331' };
/** Part of each prompt. No log may have it, and no span unless ETUDE_TRACE_CONTENT is on. */
const SECRET = 'pelican-4711';

let collector: Awaited<ReturnType<typeof startCollector>>;
let gate: ModelGate;
let stack: TestStack;

beforeAll(async () => {
  [collector, gate] = await Promise.all([startCollector(), startModelGate()]);
  const env = {
    ...collector.env,
    ETUDE_LOG_LEVEL: 'trace',
    OPENAI_BASE_URL: `${gate.url}/v1`,
    ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside',
  };
  stack = await startStack({ script: SCRIPT, env });
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([gate.close(), collector.close()]);
});

async function submit(strategy: 'attempts' | 'codeact', traceparent?: string): Promise<string> {
  const tasks = createServiceClient(Tasks, stack.address);
  const cases = [{ stdin: '2 3\n', expectedStdout: '6\n', public: true }];
  const evaluator = { kind: { case: 'ioCases' as const, value: { cases } } };
  const files = [{ path: 'notes.txt', content: new TextEncoder().encode('multiply them\n') }];
  const prompt = `Read two integers from one line and print their product. The password of the archive is ${SECRET}.`;
  const spec = { agent: `traced-${strategy}`, prompt, mode: Mode.INFERENCE, evaluator, strategy, files };
  const { name } = await tasks.submitTask({ spec }, traceparent ? { metadata: { traceparent } } : {}).finally(() => tasks.close());
  return name;
}

async function solved(name: string): Promise<Task> {
  const tasks = createServiceClient(Tasks, stack.address);
  const task = await tasks.waitTask({ name, timeout: { seconds: 60n } }).finally(() => tasks.close());
  expect(TaskState[task.state]).toBe('SUCCEEDED');
  return task;
}

/** Names from the first span of the trace to this one. */
function pathOf(span: CollectedSpan, spans: readonly CollectedSpan[]): string {
  const parent = spans.find(({ id }) => id === span.parentId);
  return parent === undefined ? span.name : `${pathOf(parent, spans)} > ${span.name}`;
}

/** The spans of a trace, once it has all of these paths. */
async function spansOf(traceId: string, wanted: readonly string[]): Promise<CollectedSpan[]> {
  const collected = () => collector.spans.filter((span) => span.traceId === traceId);
  const paths = () => collected().map((span) => pathOf(span, collected()));
  await expect.poll(paths, { timeout: 20_000 }).toEqual(expect.arrayContaining([...wanted]));
  return collected();
}

const ROLLOUT = 'etude.v1.Tasks/SubmitTask > process rollout.run > invoke_agent';

const ofWorkers = () => collector.spans.filter(({ service }) => service === 'etude-rollout-worker').length;

describe('traces of a stack', { timeout: 120_000 }, () => {
  it('are one per task, from the call to memory, also when the worker is killed', async () => {
    let name = '';
    let killed = false;
    // Holds the call for a critique, which follows the first attempt.
    gate.hold(stack.modelUrl, async () => {
      const journal = name === '' ? [] : await journalOf(stack, name.slice('tasks/'.length));
      return killed || !journal.some(([key]) => key === 'a1.record' || key.startsWith('a1.evaluate') || key.startsWith('a1.execute'));
    });
    const first = await stack.startRolloutWorker();
    name = await submit('attempts', `00-${CALLER.traceId}-${CALLER.id}-01`);
    await until(async () => (await journalOf(stack, name.slice('tasks/'.length))).some(([key]) => key.startsWith('a1.execute')), {
      what: 'an attempt',
    });
    await first.kill();
    killed = true;
    const second = await stack.startRolloutWorker();
    await solved(name);

    const agent = `${ROLLOUT} traced-attempts`;
    const spans = await spansOf(CALLER.traceId, [
      `${agent} > attempt > step critique > chat scripted`,
      `${agent} > attempt > step generate > chat scripted`,
      `${agent} > attempt > step execute > sandbox.execute > process sandbox.execute > sandbox.run`,
      `${agent} > attempt > step record > process memory.write`,
    ]);
    expect(spans.find(({ name: one }) => one.endsWith('SubmitTask'))).toMatchObject({ service: 'etude-gateway', parentId: CALLER.id });
    const run = spans.find(({ name: one }) => one === 'process rollout.run');
    expect(run?.values).toMatchObject({ 'etude.task': name.slice('tasks/'.length), 'etude.tenant': 'test', 'etude.job.workers_lost': 1 });
    const chat = spans.find(({ name: one }) => one === 'chat scripted');
    expect(chat?.values).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'scripted',
      'gen_ai.response.finish_reasons': ['stop'],
    });
    expect(chat?.values['gen_ai.usage.input_tokens']).toBeGreaterThan(0);
    expect(spans.filter(({ failed }) => failed)).toEqual([]);
    expect(JSON.stringify(collector.spans)).not.toContain(SECRET);

    const lines = [stack.gateway, second].flatMap((process) =>
      process
        .output()
        .split('\n')
        .filter((line) => line.includes('"state"')),
    );
    const states = lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ taskId }) => name.endsWith(String(taskId)));
    expect(states.map(({ state, tenant, traceId }) => [state, tenant, traceId])).toEqual(
      ['queued', 'running', 'succeeded'].map((state) => [state, 'test', CALLER.traceId]),
    );
    const logs = [stack.gateway, stack.controller, stack.consolidator, first, second].map((process) => process.output()).join('\n');
    expect(logs).not.toContain(SECRET);
    await second.stop();
  });

  it('hold prompts, code and tools only when asked for', async () => {
    gate.hold(stack.modelUrl, async () => true);
    const worker = await stack.startRolloutWorker({ ETUDE_TRACE_CONTENT: 'true' });
    const name = await submit('codeact');
    await solved(name);
    await worker.stop();
    const agent = collector.spans.find(({ name: one }) => one === 'invoke_agent traced-codeact');
    const spans = await spansOf(agent?.traceId ?? '', [
      `${ROLLOUT} traced-codeact > attempt > step tool > execute_tool fs_list`,
      `${ROLLOUT} traced-codeact > attempt > step cell > sandbox.cell > sandbox.run`,
      `${ROLLOUT} traced-codeact > attempt > step cell > sandbox.cell > step tool > execute_tool fs_read`,
    ]);
    const valuesOf = (wanted: string) => JSON.stringify(spans.find(({ name: one }) => one === wanted)?.values);
    expect(valuesOf('chat scripted')).toContain(SECRET);
    expect(valuesOf('execute_tool write_todos')).toContain('read the notes');
    expect(valuesOf('sandbox.cell')).toContain('fs_read');
  });

  it('reach the consolidation that a call asked for', async () => {
    const traceId = '1af7651916cd43dd8448eb211c80319c';
    const consolidation = createServiceClient(Consolidation, stack.address);
    const metadata = { traceparent: `00-${traceId}-${CALLER.id}-01` };
    await consolidation.runConsolidation({ agent: 'nobody' }, { metadata }).finally(() => consolidation.close());
    const spans = await spansOf(traceId, ['etude.v1.Consolidation/RunConsolidation > process consolidation.run']);
    expect(spans.filter(({ failed }) => failed)).toEqual([]);
  });

  it('are not sent by a worker where they are off', async () => {
    const before = ofWorkers();
    const worker = await stack.startRolloutWorker({ ETUDE_TRACES: 'false' });
    await solved(await submit('attempts'));
    await worker.stop();
    expect(ofWorkers()).toBe(before);
  });
});
