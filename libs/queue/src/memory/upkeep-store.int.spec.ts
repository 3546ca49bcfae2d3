import { errorCode } from '@etude/contracts/errors';
import { describe, expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { FAILED_RECEIPT_KEPT_MS, RECEIPT_KEPT_MS, UpkeepStore } from './upkeep-store.js';

const startQueue = queueForFile();

function start() {
  const rig = startQueue();
  return { ...rig, store: new UpkeepStore(rig.producer) };
}

const asked = { tenant: 'acme', requestId: 'r1', asked: {} };
const codeOf = (work: Promise<unknown>) => work.then(() => 'none', errorCode);

describe('erasures', () => {
  it('drop the name of the subject on success', async () => {
    const { store, redis: client, keys } = start();
    const receipt = await store.requestErasure(asked, { user: 'bob-the-erased' });
    const stored = await store.loadErasure('acme', receipt.id);
    expect(stored?.subject).toEqual({ user: 'bob-the-erased' });
    await store.putErasure({ found: {}, subject: stored?.subject ?? null, receipt: { ...receipt, state: 'succeeded', finishedAt: 2 } });
    const all = await Promise.all((await client.keys(`${keys.prefix}:e*`)).map((key) => client.get(key)));
    expect(JSON.stringify(all)).not.toContain('bob-the-erased');
    const ttl = await client.pttl(keys.erasure('acme', receipt.id));
    expect(ttl).toBeGreaterThan(RECEIPT_KEPT_MS - 60_000);
    expect(await client.zcard(keys.erasureOutbox)).toBe(0);
  });

  it('are kept shorter after a failure, and are reconciled again after a redrive', async () => {
    const { store, redis: client, keys } = start();
    const receipt = await store.requestErasure(asked, { user: 'bob' });
    const ttl = () => client.pttl(keys.erasure('acme', receipt.id));
    const stored = { found: { 'queue.tasks': 3 }, newFrom: 7, subject: { user: 'bob' } };
    await store.putErasure({ ...stored, receipt: { ...receipt, state: 'failed', finishedAt: 1 } });
    expect(await ttl()).toBeLessThanOrEqual(FAILED_RECEIPT_KEPT_MS);
    await store.putErasure({ ...stored, receipt });
    expect(await store.loadErasure('acme', receipt.id)).toEqual({ ...stored, receipt });
    expect([await client.zcard(keys.erasureOutbox), await ttl()]).toEqual([1, -1]);
  });
});

describe('the move to another model', () => {
  it('is idle until its start, and only one runs at a time', async () => {
    const { store } = start();
    expect((await store.reembedding()).state).toBe('idle');
    expect((await store.stopReembedding()).state).toBe('idle');
    const first = await store.startReembedding({ model: 'a' });
    expect(await store.startReembedding({ model: 'a' })).toEqual(first);
    expect(await codeOf(store.startReembedding({ model: 'b' }))).toBe('FAILED_PRECONDITION');
    expect(await codeOf(store.startReembedding({ model: 'a', dropModel: 'b' }))).toBe('FAILED_PRECONDITION');
  });

  it('fences its worker when it is stopped', async () => {
    const { store } = start();
    const first = await store.startReembedding({ model: 'a', dropModel: 'old "state":"running"' });
    expect(await store.putReembedding({ ...first, done: 5, total: 10 })).toBe(true);
    expect(await store.stopReembedding()).toMatchObject({ state: 'stopped', done: 5, dropModel: 'old "state":"running"' });
    expect(await store.putReembedding({ ...first, done: 6 })).toBe(false);
    const second = await store.startReembedding({ model: 'b' });
    expect(await store.putReembedding({ ...first, done: 7 })).toBe(false);
    expect(await store.reembedding()).toEqual(second);
  });
});
