import { rolloutIdOf } from '@etude/contracts/ids';
import { MemoryWrite } from '@etude/contracts/memory';
import type { QueueDeclaration } from '@etude/contracts/queues';
import { TaskSpec } from '@etude/contracts/task';
import type { RolloutEnd } from '@etude/domain/ports/journal';
import { redisForFile } from '@etude/test-support/redis-for-file';
import { onTestFinished } from 'vitest';
import type { z } from 'zod';
import { consume, type JobHandler } from '../src/jobs/consumer.js';
import { Producer } from '../src/jobs/producer.js';
import type { RolloutAddress } from '../src/redis/keys.js';
import { openJournal } from '../src/tasks/journal.js';
import { TaskStore } from '../src/tasks/task-store.js';

export const SPEC = TaskSpec.parse({ prompt: 'Add two numbers', evaluator: { kind: 'none' } });
/** The end of a rollout, without its usage. */
export const SOLVED = { state: 'succeeded', stopReason: 'solved', result: null, error: null } as const;

/** A memory write. */
export const WRITE = MemoryWrite.parse({
  kind: 'skill_use',
  scope: { tenant: 'acme', agent: 'default' },
  name: 'add',
  version: 1,
  success: true,
  fingerprint: 'f',
  cue: 'c',
  at: 1,
});

export const never = (): AbortSignal => new AbortController().signal;

/** A Redis for a test file. @returns a function that starts a producer in it, with keys of its own */
export function queueForFile() {
  const file = redisForFile();
  return (retentionMs?: number) => startProducer(file.url, file.prefix(), retentionMs);
}

/** A producer and a task store that are closed with the test. */
export function startProducer(redisUrl: string, prefix: string, retentionMs?: number) {
  const producer = new Producer(redisUrl, prefix);
  onTestFinished(() => producer.close());
  const { redis, keys } = producer;
  const tasks = new TaskStore(producer, { retentionMs });
  const options = { redisUrl, prefix, concurrency: 1 };
  return {
    producer,
    tasks,
    redis,
    keys,
    options,
    /** Consumes one job at a time. Closed with the test. */
    startConsumer: <P extends z.ZodType, R extends z.ZodType>(
      declaration: QueueDeclaration<P, R>,
      handler: JobHandler<P, R>,
      more: Partial<Parameters<typeof consume<P, R>>[2]> = {},
    ) => {
      const consumer = consume(declaration, handler, { ...options, ...more });
      onTestFinished(() => consumer.close(2_000));
      return consumer;
    },
    /** Submits a task of "acme". `open` takes its rollout for a worker. */
    submit: async (more: Partial<TaskSpec> = {}) => {
      const { record } = await tasks.submit('acme', { ...SPEC, ...more }, '');
      const address: RolloutAddress = { tenant: 'acme', taskId: record.id, rolloutId: rolloutIdOf(record.id) };
      return { record, address, open: (connection = redis) => openJournal(connection, keys, address, { retentionMs }) };
    },
  };
}

/** A rollout that has ended, and whose learning is pending. Its job is not added yet. */
export async function endedRollout(
  { redis, keys }: Pick<Producer, 'redis' | 'keys'>,
  tasks: TaskStore,
  learnFrom: RolloutEnd['learnFrom'] = [],
  spec: TaskSpec = SPEC,
): Promise<RolloutAddress> {
  const { record } = await tasks.submit('acme', spec, '');
  const address = { tenant: 'acme', taskId: record.id, rolloutId: rolloutIdOf(record.id) };
  const journal = await openJournal(redis, keys, address);
  await journal?.finish({ ...SOLVED, usage: journal.usage, learnFrom });
  return address;
}
