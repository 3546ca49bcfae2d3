import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SandboxExecute } from '@etude/contracts/queues';
import type { RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { isFinal, type TaskRecord, TaskSpec } from '@etude/contracts/task';
import { startScriptedModel } from '@etude/model/scripted-server';
import { loadConfig } from '@etude/platform/config';
import type { RunningWorker } from '@etude/platform/run-service';
import { consume } from '@etude/queue/jobs/consumer';
import { DeadLetters } from '@etude/queue/jobs/dead-letters';
import { ExecutionStore } from '@etude/queue/executions/executions';
import { Producer } from '@etude/queue/jobs/producer';
import { TaskStore } from '@etude/queue/tasks/task-store';
import { startRedis } from '@etude/test-support/redis';
import { until } from '@etude/test-support/until';
import { onTestFinished } from 'vitest';
import { rolloutWorkerConfig, startRolloutWorker } from '../src/rollout-worker.js';
import { CLEAN_RUN } from '@etude/domain/testing/run-results';

export type Script = Extract<Parameters<typeof startScriptedModel>[0], { script: unknown }>['script'];

export const TENANT = 'acme';
const silent = { info() {}, warn() {}, error() {} };
export const fenced = (code: string) => `\`\`\`python\n${code}\n\`\`\``;
export const spec = (given: object = {}) =>
  TaskSpec.parse({
    prompt: 'Print twice the number.',
    evaluator: { kind: 'io_cases', cases: [{ stdin: '1', expectedStdout: '2' }] },
    ...given,
  });

export type Rig = Awaited<ReturnType<typeof startRig>>;

/** Starts a worker's surroundings: Redis, queue, memory file and model client are real. Code with the word "right" answers 2. */
export async function startRig(script: Script) {
  const dir = await mkdtemp(join(tmpdir(), 'rollout-worker-'));
  const [redis, model] = await Promise.all([startRedis(), startScriptedModel({ script })]);
  const producer = new Producer(redis.url, 'etude', silent);
  const tasks = new TaskStore(producer);
  const controller = fakeController(redis.url, producer);
  await controller.ready();
  const workers: RunningWorker[] = [];
  const logged: object[] = [];
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await controller.close(1_000);
    await producer.close();
    await Promise.all([model.close(), redis.stop(), rm(dir, { recursive: true, force: true })]);
  });
  const config = loadConfig(rolloutWorkerConfig, {
    ETUDE_REDIS_URL: redis.url,
    ETUDE_MEMORY_PATH: join(dir, 'memory.sqlite'),
    ETUDE_EMBEDDER: 'lexical',
    ETUDE_RECALL_WITHHOLD_PROBABILITY: '0',
    ETUDE_SKILLS_ENABLED: 'true',
    ETUDE_SKILLS_AUTO_REGISTER: 'true',
    OPENAI_BASE_URL: model.url,
    OPENAI_MODEL: 'scripted',
  });
  return {
    producer,
    tasks,
    model,
    /** The records that workers logged at the level "info". */
    logged,
    dead: new DeadLetters(producer, tasks),
    /** The test closes the worker at its end. */
    async startWorker(): Promise<RunningWorker> {
      const worker = await startRolloutWorker(config, { ...silent, info: (details, message) => void logged.push({ ...details, message }) });
      workers.push(worker);
      return worker;
    },
    submit: async (given?: object) => (await tasks.submit(TENANT, spec(given), '')).record.id,
    finished: (taskId: string): Promise<TaskRecord> =>
      until(
        async () => {
          const task = await tasks.get(TENANT, taskId);
          return task && isFinal(task.state) ? task : null;
        },
        { what: `the end of ${taskId}` },
      ),
  };
}

const run = (planned: SandboxRun): RunResult => ({
  ...CLEAN_RUN,
  stdout: 'code' in planned && planned.code.includes('right') ? '2' : 'no',
});

function fakeController(redisUrl: string, producer: Producer) {
  const store = new ExecutionStore(producer.redis, producer.keys);
  const execute = async ({ tenant, executionId }: { tenant: string; executionId: string }) => {
    const stored = await store.load(tenant, executionId);
    if (stored) await store.save(tenant, executionId, { executionId, runs: stored.request.runs.map(run) });
    return { executionId };
  };
  return consume(SandboxExecute, execute, { redisUrl, prefix: 'etude', concurrency: 8, logger: silent });
}
