import type { Change, MemoryRecord, RecordStore } from '@etude/memory/record-store';
import { expect, it } from 'vitest';
import { claimOnce, once } from './once.js';

/** A store of claims, which dies where it is told to. */
function claims() {
  const kept = new Map<string, MemoryRecord>();
  const state = { isDown: false };
  const write = (_tenant: string, changes: readonly Change[]) => {
    if (state.isDown) return Promise.reject(new Error('gone'));
    return Promise.resolve(
      changes.map(({ record }) => {
        if (kept.has(record.key)) return false;
        kept.set(record.key, record);
        return true;
      }),
    );
  };
  const load = (_scope: unknown, _layer: unknown, _kind: unknown, keys: readonly string[]) =>
    Promise.resolve(keys.flatMap((key) => kept.get(key) ?? []));
  return { store: { write, load } as unknown as RecordStore, state };
}

const owner = { scope: { agent: 'scout', user: null } };
const request = { tenant: 'acme', requestId: 'r1', method: 'Paint', body: { colour: 'red' } };

const again = (result: string) => Promise.resolve(`again ${result}`);

/** Counts how often it is painted, and says what a repeat was told. */
function painting() {
  const done: string[] = [];
  const act = () => Promise.resolve(`coat ${done.push('red')}`);
  return { done, work: { act, again, resultOf: (coat: string) => coat } };
}

it('does the work of a request once, and tells a repeat what came of it', async () => {
  const { store } = claims();
  const { done, work } = painting();
  const send = async (part?: string) =>
    once(await claimOnce({ store }, request, owner), { ...work, ...(part === undefined ? {} : { part }) });
  expect([await send(), await send()]).toEqual(['coat 1', 'again coat 1']);
  expect([await send('door'), await send('door'), await send('wall')]).toEqual(['coat 2', 'again coat 2', 'coat 3']);
  expect(done).toHaveLength(3);
});

it('does all of a request without an id each time', async () => {
  const { work } = painting();
  const send = async () => once(await claimOnce(claims(), { ...request, requestId: '' }, owner), work);
  expect([await send(), await send()]).toEqual(['coat 1', 'coat 2']);
});

it('does the rest of a request that died on its way, as of the first time and of the version that was meant then', async () => {
  const { store, state } = claims();
  const { work } = painting();
  const first = await claimOnce({ store }, request, { ...owner, version: 3 }, 7);
  state.isDown = true;
  await expect(once(first, work)).rejects.toThrow('gone');
  state.isDown = false;
  const second = await claimOnce({ store }, request, { ...owner, version: 4 }, 8);
  expect(second).toMatchObject({ isRepeat: true, version: 3, at: 7 });
  expect(await once(second, work)).toBe('coat 2');
});

it('does anew what is gone', async () => {
  const { store } = claims();
  const { work } = painting();
  const send = async () => once(await claimOnce({ store }, request, owner), { ...work, again: () => Promise.resolve(null) });
  expect([await send(), await send()]).toEqual(['coat 1', 'coat 2']);
});
