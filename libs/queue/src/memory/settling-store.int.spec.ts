import { MemorySettleJob } from '@etude/contracts/queues';
import { describe, expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { SettlingStore } from './settling-store.js';

const startQueue = queueForFile();

function start() {
  const rig = startQueue();
  return { ...rig, store: new SettlingStore(rig.producer) };
}

describe('a settling store', () => {
  it('makes one delayed job of many requests, in each process and for each tenant', async () => {
    const { producer, store } = start();
    for (let i = 0; i < 5; i += 1) await store.request('acme');
    await new SettlingStore(producer).request('acme');
    await store.request('beta');
    const jobs = await producer.queue(MemorySettleJob.name).getDelayed();
    // The second request may fall into the next interval.
    expect(jobs.filter(({ data }) => data.tenant === 'acme').length).toBeLessThanOrEqual(2);
    expect(new Set(jobs.map(({ data }) => data.tenant as string))).toEqual(new Set(['acme', 'beta']));
  });

  it('gives the lease of a tenant to one holder at a time', async () => {
    const { store } = start();
    expect([await store.take('acme', 'a'), await store.take('acme', 'b'), await store.take('beta', 'b')]).toEqual([true, false, true]);
    await store.end('acme', 'b', 'MODEL_UNAVAILABLE: late');
    expect([await store.take('acme', 'b'), (await store.spend('acme')).failure]).toEqual([false, null]);
    await store.end('acme', 'a', 'MODEL_UNAVAILABLE: gone');
    expect(await store.take('acme', 'b')).toBe(true);
    expect((await store.spend('acme')).failure).toBe('MODEL_UNAVAILABLE: gone');
    await store.end('acme', 'b', null);
    expect((await store.spend('acme')).failure).toBeNull();
  });

  it('allows at most a fifth of a call and 500 prompt tokens for each fact of a long stream, however many facts were removed since', async () => {
    const { store } = start();
    for (let facts = 1; facts <= 200; facts += 1) if ((await store.left('acme', facts, 1_000)).calls > 0) await store.charge('acme', 900);
    const { calls, promptTokens } = await store.spend('acme');
    expect(calls).toBeGreaterThan(25);
    expect(calls).toBeLessThanOrEqual(40);
    expect(promptTokens + (await store.left('acme', 200, 1_000)).promptTokens).toBeLessThanOrEqual(200 * 500);
    await store.left('acme', 10, 1_000);
    expect((await store.left('acme', 30, 1_000)).calls).toBe(3);
  });

  it('keeps to the calls of a day', async () => {
    const { store } = start();
    await store.left('acme', 1_000, 3);
    for (let i = 0; i < 3; i += 1) await store.charge('acme', 10);
    expect((await store.left('acme', 1_000, 3)).calls).toBe(0);
    expect(await store.spend('acme')).toEqual({ calls: 3, callsToday: 3, promptTokens: 30, failure: null });
    expect(await store.spend('beta')).toEqual({ calls: 0, callsToday: 0, promptTokens: 0, failure: null });
  });
});
