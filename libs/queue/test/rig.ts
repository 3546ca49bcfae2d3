import { MemoryWrite } from '@etude/contracts/memory';
import { TaskSpec } from '@etude/contracts/task';
import type { RolloutEnd } from '@etude/domain/ports/journal';
import { onTestFinished } from 'vitest';
import { consume } from '../src/jobs/consumer.js';
import { Producer } from '../src/jobs/producer.js';
import type { RolloutAddress } from '../src/redis/keys.js';
import { openJournal } from '../src/tasks/journal.js';
import { TaskStore } from '../src/tasks/task-store.js';

export const SPEC = TaskSpec.parse({ prompt: 'Add two numbers', evaluator: { kind: 'none' } });

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

/** A producer and a task store that are closed with the test. */
export function startProducer(url: string, prefix: string, retentionMs?: number) {
  const producer = new Producer(url, prefix);
  onTestFinished(() => producer.close());
  return { producer, tasks: new TaskStore(producer, { retentionMs }), redis: producer.redis, keys: producer.keys };
}

/** A rollout that has ended, and whose learning is pending. Its job is not added yet. */
export async function endedRollout(
  { redis, keys }: Pick<Producer, 'redis' | 'keys'>,
  tasks: TaskStore,
  learnFrom: RolloutEnd['learnFrom'] = [],
  spec: TaskSpec = SPEC,
): Promise<RolloutAddress> {
  const { record } = await tasks.submit('acme', spec, '');
  const address = { tenant: 'acme', taskId: record.id, rolloutId: `${record.id}-r1` };
  const journal = await openJournal(redis, keys, address);
  await journal?.finish({ state: 'succeeded', stopReason: 'solved', result: null, usage: journal.usage, error: null, learnFrom });
  return address;
}

/** A consumer that is closed with the test. */
export const startConsumer: typeof consume = (declaration, handler, options) => {
  const consumer = consume(declaration, handler, options);
  onTestFinished(() => consumer.close(2_000));
  return consumer;
};
