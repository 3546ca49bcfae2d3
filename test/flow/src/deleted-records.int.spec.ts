import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Mode, Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it } from 'vitest';

let stack: TestStack;
let memory: ServiceClient<typeof Memory>;
let tasks: ServiceClient<typeof Tasks>;

beforeAll(async () => {
  stack = await startStack({ script: fileURLToPath(new URL('./learning.yaml', import.meta.url)) });
  await stack.startRolloutWorker();
  [memory, tasks] = [createServiceClient(Memory, stack.address), createServiceClient(Tasks, stack.address)];
});
afterAll(async () => {
  memory.close();
  tasks.close();
  await stack.stop();
});

/** The files of memory and Redis that hold a word. */
function filesWith(word: string): string[] {
  const folders = [dirname(stack.memoryPath), stack.redis.dir];
  const files = folders.flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }));
  const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  return paths.filter((path) => readFileSync(path, 'latin1').toLowerCase().includes(word));
}

/** Deletes a record, and waits for the receipt of a success. */
async function erased(id: string, layer: string) {
  const { id: erasure, supported } = await memory.deleteMemory({ id, layer });
  const receipt = await until(
    async () => {
      const found = await memory.getErasure({ id: erasure });
      return found.state === 'running' ? null : found;
    },
    { what: 'the end of the erasure' },
  );
  expect(receipt).toMatchObject({ state: 'succeeded', error: '' });
  expect(Object.values(receipt.left).every((count) => count === 0n)).toBe(true);
  return { removed: receipt.removed, supported };
}

const number = (value: number) => ({ kind: { case: 'numberValue' as const, value } });

/** Solves a task that has this prompt. Returns its id. */
async function solve(prompt: string): Promise<string> {
  const args = { values: [{ kind: { case: 'listValue' as const, value: { values: [number(1), number(2)] } } }] };
  const evaluator = {
    kind: { case: 'functionCases' as const, value: { entryPoint: 'total_even', cases: [{ args, expected: number(2) }] } },
  };
  const { name } = await tasks.submitTask({ spec: { prompt, mode: Mode.INFERENCE, evaluator } });
  expect((await tasks.waitTask({ name, timeout: { seconds: 60n } })).state).toBe(TaskState.SUCCEEDED);
  return name.replace('tasks/', '');
}

async function* document(name: string, text: string) {
  yield { part: { case: 'head' as const, value: { name, agent: 'default' } } };
  yield { part: { case: 'data' as const, value: Buffer.from(text) } };
}

it('leaves no word of a deleted record in any file of memory or Redis', { timeout: 120_000 }, async () => {
  const text = 'Quokkaword: total_even adds the even numbers of a list, and nothing else.';
  const { fact } = await memory.storeFact({ agent: 'default', text });
  const wombats = await memory.storeEpisode({
    agent: 'default',
    context: ['a wombatword in the garden'],
    reflection: 'feed the wombatword',
  });
  const moor = await memory.storeProcedure({ agent: 'default', name: 'moor_boat', prompt: 'Throw the bilbyword line first.' });
  const { document: numbat } = await memory.importDocument(document('notes.md', '# Numbatword\n\nA numbatword eats ants.\n'));
  const task = await solve('Write a function total_even(numbers) that adds the even numbers of a list of possumword things.');
  const words = ['quokkaword', 'wombatword', 'bilbyword', 'numbatword', 'possumword'];
  await until(async () => (await memory.listMemory({ kind: 'episode' })).records.length === 2, { what: 'the episode of the task' });
  const attempt = await memory.getMemory({ id: `${task}-r1.a1`, layer: 'episodic' });
  expect(JSON.stringify(attempt.fields?.['recalled'])).toContain('Quokkaword');
  for (const word of words) expect(filesWith(word)).not.toEqual([]);

  expect(await erased(fact?.id ?? '', 'semantic')).toMatchObject({
    removed: { 'memory.semantic.fact': 1n, 'memory.episodic.recalled': 1n, 'queue.journals': 1n },
    supported: [`episodes/${task}-r1`],
  });
  expect(filesWith('quokkaword')).toEqual([]);
  expect((await tasks.getTask({ name: `tasks/${task}` })).state).toBe(TaskState.SUCCEEDED);

  expect((await erased(wombats.id, 'episodic')).removed).toMatchObject({ 'memory.episodic.episode': 1n, 'memory.semantic.reflection': 1n });
  expect((await erased(moor.id, 'procedural')).removed).toMatchObject({ 'memory.procedural.skill': 1n });
  expect((await erased(numbat?.id ?? '', 'semantic')).removed).toMatchObject({
    'memory.semantic.document': 1n,
    'memory.semantic.chunk': 1n,
  });
  for (const word of words.slice(1, -1)) expect(filesWith(word)).toEqual([]);

  const { removed } = await erased(`${task}-r1.episode`, 'episodic');
  expect(removed).toMatchObject({ 'memory.episodic.episode': 1n, 'memory.episodic.transition': 1n, 'queue.tasks': 1n });
  await expect(tasks.getTask({ name: `tasks/${task}` })).rejects.toThrow('NOT_FOUND');
  expect(filesWith('possumword')).toEqual([]);
});
