import { liveThrough, SIGNER, TURNS } from '@etude/domain/testing/skill-life-property';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { RecordStore } from '../src/record-store.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { LEXICAL_MODEL, registryOver } from './lexical-registry.js';
import { modelStore } from './model-store.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryStore } from './temporary-store.js';

const TIMEOUT_MS = 240_000;
/** A server answers in milliseconds what a file does in a tenth of that. */
const QDRANT_TURNS_MAX = 24;

type Call = typeof TURNS extends fc.Arbitrary<Array<Array<infer T>>> ? T : never;
const PLAIN: Call = {
  what: 'register',
  owner: 0,
  name: 'one',
  letter: 'a',
  place: 0,
  version: 1,
  to: 'candidate',
  proof: 'none',
  mode: 'automatic',
  untrusted: false,
  passes: true,
  finds: false,
  stale: false,
  wrongDigest: false,
  twice: false,
  death: null,
};
/** After these a skill is active. Few turns at random may bring none about, and then nothing is shown of any. */
const FIRST_TURNS: ReadonlyArray<readonly Call[]> = [[PLAIN], [{ ...PLAIN, what: 'admit' }]];

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
        const lived = await liveThrough(registryOver(store, { proofChecker: SIGNER }), [...FIRST_TURNS, ...turns.slice(0, turnsMax)]);
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
  const { calls, active } = await live(() => temporaryStore({ model: LEXICAL_MODEL }), { numRuns: 25 });
  console.info(`${calls} calls on the registry in SQLite, ${active} active skills looked at behind them`);
  expect(active).toBeGreaterThan(20);
});

it('reaches none where only a beginning of a write took place', { timeout: TIMEOUT_MS }, async () => {
  const { calls, active } = await live(async () => ({ store: torn(modelStore()), close: async () => undefined }), { numRuns: 30 });
  console.info(`${calls} calls on a registry without transactions, ${active} active skills looked at behind them`);
  expect(active).toBeGreaterThan(20);
});

describeOnQdrant({ name: 'the life of a skill' }, (server) => {
  it('reaches no active skill without the signed proof for its digest', { timeout: TIMEOUT_MS }, async () => {
    const { calls, active } = await live(openOnQdrant(server, LEXICAL_MODEL), { numRuns: 6, turnsMax: QDRANT_TURNS_MAX });
    console.info(`${calls} calls on the registry in Qdrant, ${active} active skills looked at behind them`);
    expect(active).toBeGreaterThan(6);
  });
});
