import { fileURLToPath } from 'node:url';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Mode, Tasks, TaskState, type Task } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { openMemory } from '@etude/memory/open-memory';
import { embedderConfig, embedderFrom } from '@etude/model/model-config';
import type { TestProcess } from '@etude/test-support/processes';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ModelGate, startModelGate } from './model-gate.js';
import { comparable, follow, journalOf, TENANT } from './observed.js';

const SCRIPT = fileURLToPath(new URL('./kill-steps.yaml', import.meta.url));

let gate: ModelGate;
let stack: TestStack;
let worker: TestProcess;

beforeAll(async () => {
  gate = await startModelGate();
  stack = await startStack({
    script: SCRIPT,
    env: { OPENAI_BASE_URL: `${gate.url}/v1`, ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
  });
  worker = await stack.startRolloutWorker();
});
afterAll(async () => {
  await stack.stop();
  await gate.close();
});

type Strategy = 'attempts' | 'codeact';

/**
 * Submits a task that the second attempt solves. Training mode has every kind of step of attempts; the agent's script calls tools, from code
 * too. Each agent has its own memory.
 */
async function submit(agent: string, strategy: Strategy): Promise<Task> {
  const tasks = createServiceClient(Tasks, stack.address);
  const memory = createServiceClient(Memory, stack.address);
  try {
    // The model is asked for a draft only if memory has records. This record doesn't resemble the task.
    await memory.storeProcedure({ agent, name: 'water_ferns', prompt: 'Water the ferns from one can and read the label on their pots.' });
    const cases = [
      { stdin: '2 3\n', expectedStdout: '6\n', public: true },
      { stdin: '7 8\n', expectedStdout: '56\n' },
    ];
    const evaluator = { kind: { case: 'ioCases' as const, value: { cases } } };
    const mode = strategy === 'attempts' ? Mode.TRAINING : Mode.INFERENCE;
    const files = [{ path: 'notes.txt', content: new TextEncoder().encode('multiply them\n') }];
    return await tasks.submitTask({
      spec: { agent, prompt: 'Read two integers from one line and print their product.', mode, evaluator, strategy, files },
    });
  } finally {
    tasks.close();
    memory.close();
  }
}

/** The task once learning has ended too. */
async function finished(name: string): Promise<Task> {
  const tasks = createServiceClient(Tasks, stack.address);
  return tasks.waitTask({ name, learning: true }).finally(() => tasks.close());
}

/** Names of the script's rules whose answers were sent completely, in order. */
async function answeredRules(): Promise<string[]> {
  const response = await fetch(`${stack.modelUrl}/scripted/calls`);
  const { calls } = (await response.json()) as { calls: Array<{ rule: string; answered: string }> };
  return calls.filter(({ answered }) => answered === 'fully').map(({ rule }) => rule);
}

async function transitionsOf(agent: string, taskId: string): Promise<readonly number[]> {
  const embedder = await embedderFrom(embedderConfig.parse({ ETUDE_EMBEDDER: 'lexical' }));
  const memory = await openMemory({ store: { adapter: 'sqlite', path: stack.memoryPath }, embedder });
  try {
    const stored = await memory.episodic.transitions({ tenant: TENANT, agent }, `${taskId}-r1`);
    return stored.map(({ attempt }) => attempt);
  } finally {
    await memory.close();
  }
}

/** @param killsMax number of steps after which the worker is killed. Above 0, it is also killed while it waits for the lessons. */
async function outcomeOf(agent: string, strategy: Strategy, killsMax: number) {
  const before = (await answeredRules()).length;
  let taskId = '';
  let seen = 0;
  const lessons = { asked: false, released: false };
  // Holds each model call until the journal has the earlier steps. A worker killed between an answer and its entry would ask again.
  gate.hold(stack.modelUrl, async () => {
    const journal = taskId === '' ? null : await journalOf(stack, taskId);
    if (!journal?.some(([key]) => key === 't.attempts')) return journal !== null && seen >= journal.length;
    lessons.asked = true;
    return lessons.released;
  });
  const submitted = await submit(agent, strategy);
  taskId = submitted.name.slice('tasks/'.length);
  const replaceWorker = async () => {
    await worker.kill();
    worker = await stack.startRolloutWorker();
  };
  const followed = await follow(stack, submitted.name, async () => {
    if (seen < killsMax) await replaceWorker();
    seen += 1;
  });
  for (const kills of strategy === 'attempts' ? [killsMax > 0, false] : []) {
    await until(() => lessons.asked, { what: 'the call for lessons' });
    if (kills) await replaceWorker();
    lessons.asked = !kills;
  }
  lessons.released = true;
  const transitions = await until(
    async () => {
      const attempts = await transitionsOf(agent, taskId);
      return attempts.length >= 2 ? attempts : null;
    },
    { what: 'both transitions in memory' },
  );
  const task = await finished(submitted.name);
  return {
    state: TaskState[task.state],
    result: comparable(task.result, taskId),
    usage: task.usage,
    learning: task.learning,
    journal: await journalOf(stack, taskId),
    events: followed.events,
    transitions,
    answered: (await answeredRules()).slice(before),
  };
}

describe('a rollout worker that is killed with SIGKILL', () => {
  it.each(['attempts', 'codeact'] as const)(
    'leaves the same outcome when it is killed after each journaled step of %s',
    async (strategy) => {
      const undisturbed = await outcomeOf(`undisturbed-${strategy}`, strategy, 0);
      expect(undisturbed.state).toBe('SUCCEEDED');
      expect(undisturbed.transitions).toEqual([1, 2]);
      const steps = undisturbed.journal.length;
      expect(steps).toBeGreaterThanOrEqual(14);
      expect(await outcomeOf(`disturbed-${strategy}`, strategy, steps)).toEqual(undisturbed);
    },
    300_000,
  );
});
