import { AsyncLocalStorage } from 'node:async_hooks';
import type { Tracing } from '@etude/contracts/tracing';
import { expect, it } from 'vitest';
import { streamSpan } from './calls.js';

const current = new AsyncLocalStorage<string>();
const ended: string[] = [];
const tracing: Tracing = {
  get current() {
    return current.getStore();
  },
  async span(name, _start, work) {
    return current
      .run(name, () => work({ set: () => undefined, setContent: () => undefined }))
      .then(
        (value) => (ended.push(name), value),
        (error: unknown) => {
          ended.push(`${name} failed`);
          throw error;
        },
      );
  },
};

async function* answers(failing = false) {
  yield tracing.current;
  await Promise.resolve();
  yield tracing.current;
  if (failing) throw new Error('broken');
}

it('makes each answer of a stream in its span, and reads it outside', async () => {
  const seen = [];
  for await (const answer of streamSpan(tracing, 'whole', {}, () => answers())) seen.push([answer, tracing.current]);
  expect(seen).toEqual([
    ['whole', undefined],
    ['whole', undefined],
  ]);
  expect(ended).toContain('whole');
});

it('ends the span of a stream that breaks, and of one that is left', async () => {
  await expect(Array.fromAsync(streamSpan(tracing, 'broken', {}, () => answers(true)))).rejects.toThrow('broken');
  const left = streamSpan(tracing, 'left', {}, () => answers());
  await left.next();
  await left.return(undefined);
  expect(ended).toEqual(expect.arrayContaining(['broken failed', 'left']));
});
