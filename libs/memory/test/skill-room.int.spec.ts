import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { skillOf } from '@etude/domain/testing/memory-records';
import { describeQdrant, findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { RecordProceduralLayer } from '../src/layers/procedural-layer.js';
import type { Change, RecordStore } from '../src/record-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import { modelStore } from './model-store.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryDirectory } from './temporary-memory.js';

const TIMEOUT_MS = 240_000;
const QDRANT_START_TIMEOUT_MS = 90_000;
const OWNER = { tenant: 'acme', agent: 'coder' };
const RACERS = 50;
const embedder = new LexicalEmbedder();
const model = { name: embedder.profile.model, dimension: embedder.profile.dimension };
let now = 1_000_000;
const registryOver = (store: RecordStore) => new RecordProceduralLayer({ store, embedder, clock: { now: () => now } });

/** Skills and procedures in words, by turns over two registries: how many were taken, of how many names there may be. */
async function race(stores: readonly [RecordStore, RecordStore], namesMax: number): Promise<number> {
  const registries = [registryOver(stores[0]), registryOver(stores[1])] as const;
  const scope = { ...OWNER, user: null };
  const raced = await Promise.allSettled(
    Array.from({ length: RACERS }, (_, i) => {
      const registry = registries[i % 2 === 0 ? 0 : 1];
      const name = `skill_${i}`;
      if (i % 5 === 0) return registry.storeProcedure(`w${i}`, scope, name, `Do ${i}.`, { namesMax });
      return registry.store(skillOf({ name }), { namesMax });
    }),
  );
  const taken = raced.filter(({ status }) => status === 'fulfilled').length;
  const refusals = raced.flatMap((one) => (one.status === 'rejected' ? [(one.reason as Error).message] : []));
  expect(refusals.filter((message) => !message.includes(`max_skills is ${namesMax}`))).toEqual([]);
  expect(await registries[0].countNames(OWNER, RACERS)).toBe(taken);
  return taken;
}

it('holds fifty at once over two registries to what an agent may have, in SQLite', { timeout: TIMEOUT_MS }, async () => {
  const { path, remove } = temporaryDirectory();
  const file = { path: `${path}/memory.sqlite`, model };
  const stores = [await openSqliteStore(file), await openSqliteStore(file)] as const;
  onTestFinished(async () => {
    for (const store of stores) await store.close();
    remove();
  });
  expect(await race(stores, 7)).toBe(7);
});

/** What a store without transactions leaves where its writer dies: of the n-th list of several changes the first alone. */
function dyingAt(store: RecordStore, turn: number): RecordStore {
  let lists = 0;
  const write: RecordStore['write'] = async (tenant: string, changes: readonly Change[]) => {
    lists += changes.length > 1 ? 1 : 0;
    if (changes.length < 2 || lists !== turn) return store.write(tenant, changes);
    await store.write(tenant, changes.slice(0, 1));
    throw new Error('killed');
  };
  return { ...store, write };
}

it('gives up the place of a version that was lost with its writer, after a while', async () => {
  const store = modelStore();
  const registry = registryOver(dyingAt(store, 2));
  const register = (name: string) => registry.store(skillOf({ name }), { namesMax: 2 });
  await register('one');
  await expect(register('two')).rejects.toThrow('killed');
  await expect(register('three')).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  expect(await register('two')).toMatchObject({ version: 1 });
  const other = registryOver(dyingAt(modelStore(), 1));
  await expect(other.store(skillOf({ name: 'lost' }), { namesMax: 1 })).rejects.toThrow('killed');
  await expect(other.store(skillOf({ name: 'next' }), { namesMax: 1 })).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  now += 60_001;
  expect(await other.store(skillOf({ name: 'next' }), { namesMax: 1 })).toMatchObject({ version: 1 });
});

const source = await findQdrant();

describe.skipIf(source.kind === 'none')('in Qdrant', () => {
  let qdrant: TestQdrant;
  beforeAll(async () => {
    console.log(describeQdrant(source));
    qdrant = await startQdrant(source);
  }, QDRANT_START_TIMEOUT_MS);
  afterAll(() => qdrant?.stop());

  it('holds fifty at once to what an agent may have, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const { store, close } = await openOnQdrant(() => qdrant, model)();
    onTestFinished(close);
    expect(await race([store, store], 7)).toBe(7);
  });
});
