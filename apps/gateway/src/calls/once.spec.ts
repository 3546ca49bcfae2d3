import type { Change, MemoryRecord, RecordStore } from '@etude/memory/record-store';
import { expect, it } from 'vitest';
import { type FirstTime, once } from './once.js';

/** A store of claims that fails while `isDown`. */
function claims() {
  const kept = new Map<string, MemoryRecord>();
  const state = { isDown: false };
  const write = (_tenant: string, changes: readonly Change[]) => {
    if (state.isDown) return Promise.reject(new Error('gone'));
    return Promise.resolve(
      changes.map((change) => {
        if (change.do === 'insert' && kept.has(change.record.key)) return false;
        kept.set(change.record.key, change.record);
        return true;
      }),
    );
  };
  const load = (_scope: unknown, _layer: unknown, _kind: unknown, keys: readonly string[]) =>
    Promise.resolve(keys.flatMap((key) => kept.get(key) ?? []));
  return { store: { write, load } as unknown as RecordStore, state };
}

const request = { tenant: 'acme', requestId: 'r1', method: 'Paint', body: { colour: 'red' } };
const scope = { agent: 'scout', user: null };

/** Work whose result says how often it was done, and whether a repeat got a stored result. */
function painting(memory: { readonly store: RecordStore }, { act = () => undefined }: { act?: (first: FirstTime) => void } = {}) {
  let coats = 0;
  const work = {
    act: async (first: FirstTime) => {
      coats += 1;
      act(first);
      return `coat ${coats}`;
    },
    again: (result: string): Promise<string | null> => Promise.resolve(`again ${result}`),
    resultOf: (coat: string): string | null => coat,
  };
  return (more: object = {}, version = 0) => once(memory, { ...request, ...more }, { scope, version }, { ...work, ...more });
}

it('does the work of a request once, and returns the stored result to a repeat', async () => {
  const send = painting(claims());
  expect([await send(), await send(), await send({ requestId: 'r2' })]).toEqual(['coat 1', 'again coat 1', 'coat 2']);
  await expect(send({ body: { colour: 'blue' } })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
});

it('repeats a failed request with the time and the version of the first call', async () => {
  const { store, state } = claims();
  const times: FirstTime[] = [];
  const send = painting({ store }, { act: (first) => (state.isDown = times.push(first) === 1) });
  await expect(send({}, 3)).rejects.toThrow('gone');
  state.isDown = false;
  expect(await send({}, 4)).toBe('coat 2');
  expect(times).toEqual([
    { isRepeat: false, version: 3, at: times[0]?.at },
    { isRepeat: true, version: 3, at: times[0]?.at },
  ]);
});
