import { EventEmitter } from 'node:events';
import type { ServerCall } from '@etude/contracts/grpc';
import { until } from '@etude/test-support/until';
import { lastValueFrom, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import { pacedStream } from './paced-stream.js';

class SlowCall extends EventEmitter {
  writableNeedDrain = false;
}

function counting(most: number) {
  const state = { pulled: 0, closed: false };
  async function* source() {
    try {
      while (state.pulled < most) yield (state.pulled += 1);
    } finally {
      state.closed = true;
    }
  }
  return { state, source: source() };
}

const asCall = (call: SlowCall) => call as unknown as ServerCall;
const never = () => new AbortController().signal;

it('passes on everything in order and completes', async () => {
  expect(await lastValueFrom(pacedStream(asCall(new SlowCall()), counting(5).source, never()).pipe(toArray()))).toEqual([1, 2, 3, 4, 5]);
});

it('pulls no further while the caller does not read', async () => {
  const call = new SlowCall();
  const { state, source } = counting(5);
  call.writableNeedDrain = true;
  const seen: number[] = [];
  pacedStream(asCall(call), source, never()).subscribe((value) => seen.push(value));
  await until(() => call.listenerCount('drain') > 0);
  expect([state.pulled, seen]).toEqual([1, [1]]);
  call.writableNeedDrain = false;
  call.emit('drain');
  await until(() => seen.length === 5);
});

it('ends with the reason of the signal and closes its source', async () => {
  const call = new SlowCall();
  call.writableNeedDrain = true;
  const { state, source } = counting(5);
  const leaving = new AbortController();
  const errors: unknown[] = [];
  pacedStream(asCall(call), source, leaving.signal).subscribe({ error: (error: unknown) => errors.push(error) });
  await until(() => call.listenerCount('drain') > 0);
  leaving.abort(new Error('gone'));
  await until(() => errors.length > 0);
  expect(errors).toMatchObject([{ message: 'gone' }]);
  await until(() => state.closed);
});
