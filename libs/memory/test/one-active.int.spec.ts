import { DECISIONS, decideAtOnce } from '@etude/domain/testing/one-active-property';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RecordStore } from '../src/record-store.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { LEXICAL_MODEL, registryOver } from './lexical-registry.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryStore } from './temporary-store.js';

const TIMEOUT_MS = 240_000;

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
  const { store, second, close } = await temporaryStore({ model: LEXICAL_MODEL });
  return { stores: [store, await second(LEXICAL_MODEL)], close };
};

it('leaves at most one version active in a SQLite file that two have open', { timeout: TIMEOUT_MS }, async () => {
  const { active, refused } = await decide(inOneFile, 40);
  console.info(`${active} times one was active in SQLite, ${refused} decisions were refused`);
  expect(active).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(10);
});

describeOnQdrant({ name: 'versions of a skill' }, (server) => {
  it('leaves at most one version active, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const opened = openOnQdrant(server, LEXICAL_MODEL);
    const open = async (): Promise<TwoStores> => {
      const { store, close } = await opened();
      return { stores: [store, store], close };
    };
    const { active } = await decide(open, 6, 4);
    expect(active).toBeGreaterThan(0);
  });
});
