import { MemoryWrite } from '@etude/contracts/memory';
import { TaskSpec } from '@etude/contracts/task';
import { onTestFinished } from 'vitest';
import { consume } from '../src/jobs/consumer.js';
import { Producer } from '../src/jobs/producer.js';
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

/** A consumer that is closed with the test. */
export const startConsumer: typeof consume = (declaration, handler, options) => {
  const consumer = consume(declaration, handler, options);
  onTestFinished(() => consumer.close(2_000));
  return consumer;
};
