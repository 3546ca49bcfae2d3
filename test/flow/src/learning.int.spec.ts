import { fileURLToPath } from 'node:url';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Skills, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { LearningState, Mode, Tasks, TaskState, type Task, type TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it } from 'vitest';

/** A plain object, so that variants can be spread. */
type Spec = Exclude<MessageInitShape<typeof TaskSpecSchema>, { $typeName: string }>;

let stack: TestStack;
let clients: Array<{ close(): void }>;
const open = <T extends { close(): void }>(client: T) => {
  clients.push(client);
  return client;
};

beforeAll(async () => {
  clients = [];
  stack = await startStack({ script: fileURLToPath(new URL('./learning.yaml', import.meta.url)) });
  await stack.startRolloutWorker();
});
afterAll(async () => {
  for (const client of clients) client.close();
  await stack.stop();
});

const PROMPT = 'Write a function total_even(numbers) that returns the sum of the even numbers in a list.';
const REWORDED = 'Write a function sum_of_evens(values) that returns the sum of the even values in a list.';

const number = (value: number) => ({ kind: { case: 'numberValue' as const, value } });

function spec(prompt: string, entryPoint: string, mode: Mode): Spec {
  const list = (...numbers: number[]) => ({ values: [{ kind: { case: 'listValue' as const, value: { values: numbers.map(number) } } }] });
  const cases = [
    { args: list(1, 2, 3, 4), expected: number(6), public: true },
    { args: list(), expected: number(0) },
    { args: list(7, 9), expected: number(0) },
  ];
  return { prompt, mode, evaluator: { kind: { case: 'functionCases', value: { entryPoint, cases } } } };
}

async function solve(task: Spec): Promise<Task> {
  const tasks = open(createServiceClient(Tasks, stack.address));
  const { name } = await tasks.submitTask({ spec: task });
  return tasks.waitTask({ name, timeout: { seconds: 60n }, learning: true });
}

it('answers a learned task by a verified skill without the model', async () => {
  const first = await solve(spec(PROMPT, 'total_even', Mode.TRAINING));
  expect(TaskState[first.state]).toBe('SUCCEEDED');
  expect(first).toMatchObject({ usage: { modelCalls: 1 }, learning: { state: LearningState.DONE, usage: { modelCalls: 1 } } });

  const skills = open(createServiceClient(Skills, stack.address));
  const learned = await until(async () => (await skills.listSkills({ status: SkillStatus.ACTIVE })).skills[0], { what: 'an active skill' });
  expect(learned).toMatchObject({ agent: 'default', scripted: true, testCount: 3, sources: [first.name] });
  expect(learned.evidence.length).toBeGreaterThan(0);

  const same = await solve(spec(PROMPT, 'total_even', Mode.INFERENCE));
  expect(same).toMatchObject({ state: TaskState.SUCCEEDED, usage: { modelCalls: 0 }, result: { casesPassed: 3 } });
  expect(same.result?.skill).toBe(`${learned.name}/versions/1`);

  const alike = await solve(spec(REWORDED, 'sum_of_evens', Mode.INFERENCE));
  expect(alike).toMatchObject({ state: TaskState.SUCCEEDED, usage: { modelCalls: 0 } });
  expect(alike.result?.skill).toBe(`${learned.name}/versions/1`);

  const used = await until(
    async () => {
      const skill = await skills.getSkill({ name: learned.name });
      return skill.executionCount === 2n ? skill : null;
    },
    { what: 'both uses counted' },
  );
  expect(used.successRate).toBe(1);
});

it('keeps a secret of a task out of memory', async () => {
  const secret = `AKIA${'QZ7XW4RT'.repeat(2)}`;
  await solve(spec(`${PROMPT} Sign the answer with ${secret}.`, 'total_even', Mode.INFERENCE));
  const memory = open(createServiceClient(Memory, stack.address));
  const exported = async () => {
    const lines = (await Array.fromAsync(memory.exportMemory({}))).flatMap((message) => message.lines);
    const records = lines.filter((line) => line.includes('Sign the answer with [masked: aws].'));
    return records.length >= 2 ? lines.join() : null;
  };
  expect(await until(exported, { what: 'the attempt and the episode' })).not.toContain(secret);
});
