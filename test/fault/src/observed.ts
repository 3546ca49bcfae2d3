import { fileURLToPath } from 'node:url';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tasks, TaskState, type Task } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { connectRedis } from '@etude/queue/redis/redis';
import { readJournal } from '@etude/queue/tasks/journal';
import { RedisKeys } from '@etude/queue/redis/keys';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { afterAll } from 'vitest';

export const TENANT = 'test';
export const KEYS = new RedisKeys('etude');

/** A stack whose scripted model writes requested skills, with a connection to its Redis and a client of `Skills`. */
export async function startSkillStack() {
  const stack = await startStack({ script: fileURLToPath(new URL('./skill-architect.yaml', import.meta.url)) });
  const redis = connectRedis(stack.redis.url, 'producer');
  const skills = createServiceClient(Skills, stack.address);
  afterAll(async () => {
    skills.close();
    redis.disconnect();
    await stack.stop();
  });
  return { stack, redis, skills };
}

/** Fields that hold times. `stamp` has the times of files. */
const TIMES = ['createdAt', 'startedAt', 'endedAt', 'at', 'durationMs', 'cpuMs', 'wallMs', 'memoryPeakKiB', 'stamp'];
/** Fields of recalled records that depend on other records of the tenant and on the agent's name. */
const OF_THE_AGENT = ['score', 'sources'];
const VARYING = new Set([...TIMES, ...OF_THE_AGENT]);

/** A copy of the value with the ids of this task and of sandboxes replaced, and without times and fields that depend on the agent. */
export function comparable(value: unknown, taskId: string): unknown {
  if (typeof value === 'string') return value.replaceAll(taskId, '<task>').replaceAll(/sandboxes\/s[0-9a-z]+/g, '<sandbox>');
  if (Array.isArray(value)) return value.map((item) => comparable(item, taskId));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !VARYING.has(key))
      .map(([key, item]) => [key, comparable(item, taskId)]),
  );
}

export async function journalOf(stack: TestStack, taskId: string): Promise<Array<readonly [string, unknown]>> {
  const redis = connectRedis(stack.redis.url, 'producer');
  try {
    const entries = await readJournal(redis, KEYS, `${taskId}-r1`);
    return entries.map(({ key, value }) => [key, comparable(value, taskId)] as const);
  } finally {
    redis.disconnect();
  }
}

/** Follows a task to its end; `onStep` is awaited for each journaled step before the next event is read. */
export async function follow(
  stack: TestStack,
  name: string,
  onStep: (step: string) => Promise<void>,
): Promise<{ task: Task; events: string[] }> {
  const tasks = createServiceClient(Tasks, stack.address);
  const events: string[] = [];
  let last: Task | undefined;
  try {
    for await (const { event } of tasks.watchTask({ name })) {
      if (event.case === 'stepFinished') {
        events.push(`step ${event.value.step}`);
        await onStep(event.value.step);
      } else if (event.case === 'finished') last = event.value.task;
      else if (event.case === 'attemptFinished') events.push(`attempt ${event.value.attempt} ${event.value.verdict}`);
      else if (event.case === 'stateChanged') events.push(`state ${TaskState[event.value.state]}`);
      else if (event.case === 'attemptStarted') events.push(`start ${event.value.attempt}`);
    }
  } finally {
    tasks.close();
  }
  if (!last) throw new Error(`the watch of ${name} ended without a finished event`);
  return { task: last, events };
}
