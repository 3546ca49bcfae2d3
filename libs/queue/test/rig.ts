import { randomUUID } from 'node:crypto';
import { TaskSpec } from '@etude/contracts/task';
import { startRedis } from '@etude/test-support/redis';
import type { TestRedis } from '@etude/test-support/redis';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { consume } from '../src/consumer.js';
import { Producer } from '../src/producer.js';
import { TaskStore } from '../src/task-store.js';

export const SPEC = TaskSpec.parse({ prompt: 'Add two numbers', evaluator: { kind: 'none' } });

export const never = (): AbortSignal => new AbortController().signal;

/** One Redis for a test file. Each test takes a prefix of its own in it. */
export function redisForFile(options: { durable?: boolean } = { durable: false }): { readonly server: TestRedis; prefix(): string } {
  let server: TestRedis | undefined;
  beforeAll(async () => {
    server = await startRedis(options);
  });
  afterAll(() => server?.stop());
  return {
    get server() {
      if (!server) throw new Error('Redis is not started');
      return server;
    },
    prefix: () => `t${randomUUID().slice(0, 8)}`,
  };
}

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
