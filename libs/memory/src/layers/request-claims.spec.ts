import { factOf } from '@etude/domain/testing/memory-records';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { describe, expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import { claimRequest, noteResult } from './repeats.js';
import { semanticLayer } from './semantic-layer.js';

const scope = { tenant: 'acme', agent: 'scout', user: 'ann' };
const claim = { layer: 'semantic', scope, requestId: 'r1', digest: 'a', at: 1 } as const;

describe('a claimed request id', () => {
  it('accepts a repeat of the same request, and refuses another request', async () => {
    const store = modelStore();
    await claimRequest(store, claim);
    await claimRequest(store, { ...claim, at: 2 });
    await expect(claimRequest(store, { ...claim, digest: 'b' })).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    const bob = { ...claim, scope: { ...scope, user: 'bob' }, digest: 'c' };
    await expect(claimRequest(store, bob)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    await claimRequest(store, { ...bob, scope: { ...bob.scope, tenant: 'globex' } });
  });

  it('lets one of many concurrent requests continue', async () => {
    const store = modelStore();
    const tries = Array.from({ length: 20 }, (_, i) => claimRequest(store, { ...claim, digest: String(i) }));
    expect((await Promise.allSettled(tries)).filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

describe('the result of a request', () => {
  it('is returned once it is stored, and never changes', async () => {
    const store = modelStore();
    await claimRequest(store, { ...claim, note: 'of the first' });
    expect(await claimRequest(store, claim)).toEqual({ isRepeat: true, note: 'of the first', result: null });
    for (const result of ['first', 'second']) await noteResult(store, claim, result);
    expect(await claimRequest(store, claim)).toEqual({ isRepeat: true, note: 'of the first', result: 'first' });
  });
});

it('refuses a write id that another owner used', async () => {
  const layer = semanticLayer({ store: modelStore(), embedder: new LexicalEmbedder(), clock: { now: Date.now } });
  await layer.store('w1', factOf({ scope, text: 'The safe opens with 4711.' }));
  const bob = factOf({ scope: { ...scope, user: 'bob' }, text: 'The gate is green.' });
  await expect(layer.store('w1', bob)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
  await layer.close();
});
