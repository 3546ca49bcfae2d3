import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { DECISIONS, decideAtOnce } from '@etude/domain/testing/one-active-property';
import { describeQdrant, findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordProceduralLayer } from '../src/layers/procedural-layer.js';
import type { RecordStore } from '../src/record-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryDirectory } from './temporary-memory.js';

const TIMEOUT_MS = 240_000;
const QDRANT_START_TIMEOUT_MS = 90_000;
const embedder = new LexicalEmbedder();
const model = { name: embedder.profile.model, dimension: embedder.profile.dimension };
const registryOver = (store: RecordStore) => new RecordProceduralLayer({ store, embedder, clock: { now: () => 0 } });

interface TwoStores {
  readonly stores: readonly [RecordStore, RecordStore];
  readonly close: () => Promise<void>;
}

async function decide(open: () => Promise<TwoStores>, numRuns: number, turnsMax = Infinity) {
  let [active, refused] = [0, 0];
  await fc.assert(
    fc.asyncProperty(DECISIONS, async (turns) => {
      const { stores, close } = await open();
      try {
        const found = await decideAtOnce([registryOver(stores[0]), registryOver(stores[1])], turns.slice(0, turnsMax));
        active += found.active;
        refused += found.refused;
      } finally {
        await close();
      }
    }),
    { numRuns },
  );
  return { active, refused };
}

const inOneFile = async (): Promise<TwoStores> => {
  const { path, remove } = temporaryDirectory();
  const file = { path: `${path}/memory.sqlite`, model };
  const stores = [await openSqliteStore(file), await openSqliteStore(file)] as const;
  return {
    stores,
    async close() {
      for (const store of stores) await store.close();
      remove();
    },
  };
};

it('leaves at most one version active in a SQLite file that two have open', { timeout: TIMEOUT_MS }, async () => {
  const { active, refused } = await decide(inOneFile, 40);
  console.info(`${active} times one was active in SQLite, ${refused} decisions were refused`);
  expect(active).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(10);
});

const source = await findQdrant();

describe.skipIf(source.kind === 'none')('in Qdrant', () => {
  let qdrant: TestQdrant;
  beforeAll(async () => {
    console.log(describeQdrant(source));
    qdrant = await startQdrant(source);
  }, QDRANT_START_TIMEOUT_MS);
  afterAll(() => qdrant?.stop());

  it('leaves at most one version active, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const opened = openOnQdrant(() => qdrant, model);
    const open = async (): Promise<TwoStores> => {
      const { store, close } = await opened();
      return { stores: [store, store], close };
    };
    const { active } = await decide(open, 6, 4);
    expect(active).toBeGreaterThan(0);
  });
});
