import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { startRedis, type TestRedis } from './redis.js';

/** One Redis for a test file, without an append-only file. Each test uses its own key prefix. */
export function redisForFile(): { readonly url: string; prefix(): string } {
  let server: TestRedis | undefined;
  beforeAll(async () => {
    server = await startRedis({ durable: false });
  });
  afterAll(() => server?.stop());
  return {
    get url() {
      if (!server) throw new Error('Redis is not started');
      return server.url;
    },
    prefix: () => `t${randomUUID().slice(0, 8)}`,
  };
}
