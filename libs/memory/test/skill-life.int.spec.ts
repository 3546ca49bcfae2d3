import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { liveThrough, SIGNER, TURNS } from '@etude/domain/testing/skill-life-property';
import { describeQdrant, findQdrant, startQdrant, type TestQdrant } from '@etude/test-support/qdrant';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RecordProceduralLayer } from '../src/layers/procedural-layer.js';
import type { RecordStore } from '../src/record-store.js';
import { openSqliteStore } from '../src/sqlite/sqlite-store.js';
import { modelStore } from './model-store.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryDirectory } from './temporary-memory.js';

const TIMEOUT_MS = 240_000;
const QDRANT_START_TIMEOUT_MS = 90_000;
/** A server answers in milliseconds what a file does in a tenth of that. */
const QDRANT_TURNS_MAX = 24;
const embedder = new LexicalEmbedder();
const model = { name: embedder.profile.model, dimension: embedder.profile.dimension };
const registryOver = (store: RecordStore) => new RecordProceduralLayer({ store, embedder, clock: { now: () => 0 }, proofChecker: SIGNER });

/** Without transactions: of every third list of changes only a beginning is written. */
function torn(store: RecordStore): RecordStore {
  let writes = 0;
  const write: RecordStore['write'] = async (tenant, changes) => {
    writes += 1;
    if (writes % 3 !== 0 || changes.length < 2) return store.write(tenant, changes);
    const done = await store.write(tenant, changes.slice(0, 1));
    return [...done, ...changes.slice(1).map(() => false)];
  };
  return { ...store, write };
}

interface Lived {
  readonly numRuns: number;
  readonly turnsMax?: number;
}

async function live(open: () => Promise<{ store: RecordStore; close: () => Promise<void> }>, { numRuns, turnsMax = Infinity }: Lived) {
  let [calls, active] = [0, 0];
  await fc.assert(
    fc.asyncProperty(TURNS, async (turns) => {
      const { store, close } = await open();
      try {
        const lived = await liveThrough(registryOver(store), turns.slice(0, turnsMax));
        calls += lived.calls;
        active += lived.active;
      } finally {
        await close();
      }
    }),
    { numRuns },
  );
  return { calls, active };
}

it('reaches no active skill in SQLite without the signed proof for its digest', { timeout: TIMEOUT_MS }, async () => {
  const { calls, active } = await live(
    async () => {
      const { path, remove } = temporaryDirectory();
      const store = await openSqliteStore({ path: `${path}/memory.sqlite`, model });
      return {
        store,
        async close() {
          await store.close();
          remove();
        },
      };
    },
    { numRuns: 25 },
  );
  console.info(`${calls} calls on the registry in SQLite, ${active} active skills looked at behind them`);
  expect(active).toBeGreaterThan(20);
});

it('reaches none where only a beginning of a write took place', { timeout: TIMEOUT_MS }, async () => {
  const { calls, active } = await live(async () => ({ store: torn(modelStore()), close: async () => undefined }), { numRuns: 30 });
  console.info(`${calls} calls on a registry without transactions, ${active} active skills looked at behind them`);
  expect(active).toBeGreaterThan(20);
});

const source = await findQdrant();

describe.skipIf(source.kind === 'none')('in Qdrant', () => {
  let qdrant: TestQdrant;
  beforeAll(async () => {
    console.log(describeQdrant(source));
    qdrant = await startQdrant(source);
  }, QDRANT_START_TIMEOUT_MS);
  afterAll(() => qdrant?.stop());

  it('reaches no active skill without the signed proof for its digest', { timeout: TIMEOUT_MS }, async () => {
    const open = openOnQdrant(() => qdrant, model);
    const { calls, active } = await live(open, { numRuns: 6, turnsMax: QDRANT_TURNS_MAX });
    console.info(`${calls} calls on the registry in Qdrant, ${active} active skills looked at behind them`);
    expect(active).toBeGreaterThan(0);
  });
});
