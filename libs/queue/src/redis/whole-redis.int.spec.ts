import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis } from '@etude/test-support/redis';
import { Redis } from 'ioredis';
import { afterAll, expect, it } from 'vitest';
import { clearRedis, copyRedis, isRedisEmpty, loadRedis } from './whole-redis.js';

const [from, to] = await Promise.all([startRedis({ durable: false }), startRedis({ durable: false })]);
const folder = mkdtempSync(join(tmpdir(), 'etude-whole-'));
const [source, target] = [new Redis(from.url), new Redis(to.url)];
afterAll(async () => {
  source.disconnect();
  target.disconnect();
  await Promise.all([from.stop(), to.stop()]);
  rmSync(folder, { recursive: true });
});

it('copies every kind of key with its end into another Redis', async () => {
  await source.set('etude:a', 'ä', 'PXAT', 4_000_000_000_000);
  await source.xadd('etude:events', '1-1', 'k', 'v');
  await source.zadd('etude:outbox', 5, 'acme/t1');
  const path = join(folder, 'redis.rdb');
  await copyRedis(from.url, path, process.env).copied;
  expect(await isRedisEmpty(to.url, 'etude')).toBe(true);
  await loadRedis(path, to.url);
  expect(await isRedisEmpty(to.url, 'etude')).toBe(false);
  expect(await target.get('etude:a')).toBe('ä');
  expect(await target.pexpiretime('etude:a')).toBe(4_000_000_000_000);
  expect(await target.xrange('etude:events', '-', '+')).toEqual([['1-1', ['k', 'v']]]);
  expect(await target.zscore('etude:outbox', 'acme/t1')).toBe('5');
});

it("clears one installation's keys only", async () => {
  await target.mset({ 'etude:stale': '1', 'other:key': '1' });
  await clearRedis(to.url, 'etude');
  expect(await target.keys('*')).toEqual(['other:key']);
});

it('says that Redis is away', async () => {
  const copy = copyRedis('redis://127.0.0.1:1', join(folder, 'none.rdb'), process.env);
  await expect(copy.taken).rejects.toThrow(/could not copy Redis/);
  await expect(copy.copied).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
});
