import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { BodyReader } from './body-reader.js';
import { restError } from './http-door.js';

function bodyOf(content: string | null, announced?: number): PassThrough & IncomingMessage {
  const headers = announced === undefined ? {} : { 'content-length': String(announced) };
  const body = Object.assign(new PassThrough(), { headers }) as never as PassThrough & IncomingMessage;
  if (content !== null) body.end(content);
  return body;
}

it('reads so many bodies at once, small ones besides, and gives each turn back', async () => {
  const reader = new BodyReader({ readingMax: 1, idleMs: 10_000 });
  const first = bodyOf(null);
  const reading = reader.whole(first, 1_000_000);
  await expect(reader.whole(bodyOf(null), 1_000_000)).rejects.toMatchObject({
    code: 'MEMORY_UNAVAILABLE',
    details: { retryAfterMs: 1_000 },
  });
  expect(String(await reader.whole(bodyOf('{}', 2), 1_000_000))).toBe('{}');
  first.end('all of it');
  expect(String(await reading)).toBe('all of it');
  expect(String(await reader.whole(bodyOf('next'), 1_000_000))).toBe('next');
});

it('refuses what is too large, announced or not, and what stands still', async () => {
  const reader = new BodyReader({ readingMax: 1, idleMs: 1 });
  const statusOf = (body: IncomingMessage) => reader.whole(body, 3).catch((error: unknown) => restError(error).status);
  expect([await statusOf(bodyOf(null, 4)), await statusOf(bodyOf('four')), await statusOf(bodyOf(null))]).toEqual([413, 413, 408]);
});
