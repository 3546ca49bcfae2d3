import fc from 'fast-check';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { BodyReader, isDeeperThan } from './body-reader.js';

function bodyOf(announced?: number): PassThrough & IncomingMessage {
  const headers = announced === undefined ? {} : { 'content-length': String(announced) };
  return Object.assign(new PassThrough(), { headers }) as never;
}

it('a reader of bodies reads so many at once, small ones besides, and gives each turn back', async () => {
  const reader = new BodyReader({ readingMax: 1, idleMs: 10_000 });
  const first = bodyOf();
  const reading = reader.whole(first, 1_000_000);
  await expect(reader.whole(bodyOf(), 1_000_000)).rejects.toMatchObject({
    code: 'MEMORY_UNAVAILABLE',
    details: { retryAfterMs: 1_000 },
  });
  const small = bodyOf(2);
  small.end('{}');
  expect(String(await reader.whole(small, 1_000_000))).toBe('{}');
  first.end('all of it');
  expect(String(await reading)).toBe('all of it');
  const next = bodyOf();
  next.end('next');
  expect(String(await reader.whole(next, 1_000_000))).toBe('next');
});

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

it('tells how deep any JSON is nested, whatever its texts hold', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const json = JSON.stringify(value);
      const depth = depthOf(value);
      expect(isDeeperThan(json, depth)).toBe(false);
      expect(isDeeperThan(json, depth - 1)).toBe(depth > 0);
    }),
  );
});

it('takes what is in quotes for text, and ends with what does not end', () => {
  expect(isDeeperThan('"[[[[\\"[[["', 0)).toBe(false);
  expect(isDeeperThan('"[[[[\\', 0)).toBe(false);
  expect(isDeeperThan('['.repeat(1_000_000), 100)).toBe(true);
});
