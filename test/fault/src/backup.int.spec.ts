import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Mode, Tasks, TaskState } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { connectRedis } from '@etude/queue/redis/redis';
import { programEnvironment } from '@etude/test-support/processes';
import { startRedis } from '@etude/test-support/redis';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, expect, it, onTestFinished } from 'vitest';

const SCRIPT = fileURLToPath(new URL('./kill-steps.yaml', import.meta.url));
const MAIN = fileURLToPath(new URL('../../../apps/consolidation-worker/dist/backup-main.js', import.meta.url));
const TASKS = 6;
/** A backup starts after each of these numbers of accepted tasks. */
const MOMENTS = [2, 4];

const folder = mkdtempSync(join(tmpdir(), 'etude-backup-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function backupMain(args: readonly string[], stack: Partial<Pick<TestStack, 'redis' | 'memoryPath'>>) {
  const env = {
    ...programEnvironment(),
    ETUDE_EMBEDDER: 'lexical',
    ETUDE_REDIS_URL: stack.redis?.url ?? '',
    ETUDE_MEMORY_PATH: stack.memoryPath ?? '',
  };
  return promisify(execFile)(process.execPath, [MAIN, ...args], { env });
}

function clientsOf(stack: TestStack) {
  const [tasks, memory] = [createServiceClient(Tasks, stack.address), createServiceClient(Memory, stack.address)];
  return { tasks, memory, close: () => [tasks, memory].forEach((client) => client.close()) };
}

/** A task whose second attempt solves it, and an episode of the same agent. */
async function submit({ tasks, memory }: ReturnType<typeof clientsOf>, agent: string): Promise<string> {
  await memory.storeEpisode({ agent, context: ['Cross the bridge'], actions: ['Waited'], reflection: 'It opens at noon.' });
  const cases = [
    { stdin: '2 3\n', expectedStdout: '6\n', public: true },
    { stdin: '7 8\n', expectedStdout: '56\n' },
  ];
  const evaluator = { kind: { case: 'ioCases' as const, value: { cases } } };
  const prompt = 'Read two integers from one line and print their product.';
  return (await tasks.submitTask({ spec: { agent, prompt, mode: Mode.TRAINING, evaluator } })).name;
}

it('restores backups of a busy stack: each accepted task ends once, and memory holds each write once', async () => {
  const busy = await startStack({ script: SCRIPT });
  const clients = clientsOf(busy);
  const backups: Array<{ readonly path: string; readonly accepted: readonly string[] }> = [];
  try {
    await busy.startRolloutWorker();
    const accepted: string[] = [];
    const running: Array<Promise<unknown>> = [];
    for (let i = 0; i < TASKS; i += 1) {
      if (MOMENTS.includes(i)) {
        const path = join(folder, `at-${i}`);
        backups.push({ path, accepted: [...accepted] });
        running.push(backupMain(['backup', path], busy));
      }
      accepted.push(await submit(clients, `agent-${i}`));
    }
    await Promise.all(running);
  } finally {
    clients.close();
    await busy.stop();
  }
  expect(backups.map(({ accepted }) => accepted.length)).toEqual(MOMENTS);
  for (const { path, accepted } of backups) await expectWhole(path, accepted);
}, 180_000);

async function expectWhole(path: string, accepted: readonly string[]): Promise<void> {
  const [redis, memoryPath] = [`${path}-redis`, `${path}-memory.sqlite`];
  await backupMain(['restore', path, '--redis-folder', redis], { memoryPath });
  const stack = await startStack({ script: SCRIPT, data: { redis, memory: memoryPath } });
  const { tasks, memory, close } = clientsOf(stack);
  try {
    await stack.startRolloutWorker();
    for (const [i, name] of accepted.entries()) {
      const task = await tasks.waitTask({ name, learning: true });
      expect(task.state).toBe(TaskState.SUCCEEDED);
      const listed = async (kind: string) => (await memory.listMemory({ kind, agent: `agent-${i}`, all: true })).records;
      // One attempt fails, one solves the task. The task's own episode is added to the stored episode.
      for (const kind of ['transition', 'episode']) {
        const records = await until(async () => ((await listed(kind)).length >= 2 ? listed(kind) : null), { what: `each ${kind}` });
        expect(records).toHaveLength(2);
      }
      expect((await listed('episode')).filter(({ fields }) => JSON.stringify(fields).includes('Cross the bridge'))).toHaveLength(1);
    }
  } finally {
    close();
    await stack.stop();
  }
}

it('fills a Redis that runs, a second time only with --force, which clears it first', async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const target = { redis, memoryPath: join(folder, 'other.sqlite') };
  const path = join(folder, `at-${MOMENTS[0]}`);
  expect((await backupMain(['restore', path], target)).stdout).toMatch(/^restored /);
  await expect(backupMain(['restore', path], target)).rejects.toMatchObject({ stderr: expect.stringMatching(/Redis has data/) });
  const client = connectRedis(redis.url, 'producer');
  onTestFinished(() => client.disconnect());
  await client.set('etude:of-later', '1');
  await backupMain(['restore', path, '--force'], target);
  expect(await client.exists('etude:of-later')).toBe(0);
  expect(await client.exists('etude:line')).toBe(1);
});

it('refuses a damaged backup and changes nothing', async () => {
  const path = join(folder, 'at-2');
  writeFileSync(join(path, 'redis.rdb'), 'REDIS0010');
  const target = join(folder, 'nothing');
  await expect(
    backupMain(['restore', path, '--redis-folder', target], { memoryPath: join(target, 'memory.sqlite') }),
  ).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/redis\.rdb of the backup is missing or damaged/),
  });
  expect(readdirSync(folder)).not.toContain('nothing');
});
