import { DECISIONS_ON_CALLERS, decideOnCallers } from '@etude/domain/testing/callers-property';
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
  let [callers, refused] = [0, 0];
  await fc.assert(
    fc.asyncProperty(DECISIONS_ON_CALLERS, async (turns) => {
      const { stores, close } = await open();
      try {
        const found = await decideOnCallers([registryOver(stores[0]), registryOver(stores[1])], turns.slice(0, turnsMax));
        callers += found.callers;
        refused += found.refused;
      } finally {
        await close();
      }
    }),
    { numRuns },
  );
  return { callers, refused };
}

const inOneFile = async (): Promise<TwoStores> => {
  const { store, second, close } = await temporaryStore({ model: LEXICAL_MODEL });
  return { stores: [store, await second(LEXICAL_MODEL)], close };
};

it('leaves what is in use able to run in a SQLite file that two have open', { timeout: TIMEOUT_MS }, async () => {
  const { callers, refused } = await decide(inOneFile, 40);
  console.info(`${callers} callers in use were looked at in SQLite, ${refused} decisions were refused`);
  expect(callers).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(10);
});

describeOnQdrant({ name: 'skills that call each other' }, (server) => {
  it('leaves what is in use able to run, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const opened = openOnQdrant(server, LEXICAL_MODEL);
    const open = async (): Promise<TwoStores> => {
      const { store, close } = await opened();
      return { stores: [store, store], close };
    };
    const { callers } = await decide(open, 6, 4);
    expect(callers).toBeGreaterThan(0);
  });
});
