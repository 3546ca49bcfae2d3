import { skillOf } from '@etude/domain/testing/memory-records';
import { TEST_SIGNER } from '@etude/domain/testing/bundle-fixture';
import { liveThrough, TURNS } from '@etude/domain/testing/skill-life-property';
import { seesNothingOfOthers, STEPS } from '@etude/domain/testing/unseen-skills-property';
import * as fc from 'fast-check';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ProceduralLayer } from '../src/memory.js';
import type { RecordStore } from '../src/record-store.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { LEXICAL_MODEL, registryOver } from './lexical-registry.js';
import { modelStore } from './model-store.js';
import { reuseOnQdrant } from './qdrant-under-test.js';
import type { StoreUnderTest } from './record-store-conformance.js';
import { temporaryStore } from './temporary-store.js';

const timeout = 240_000;
const OWNER = { tenant: 'acme', agent: 'coder' };
const RACERS = 50;
const ADDED_MAX = 7;

type Open = () => Promise<Pick<StoreUnderTest, 'store' | 'second' | 'close'>>;

/** The number of runs of each property and its maximum number of turns. A server takes ten times as long as a file. */
interface Runs {
  readonly life: number;
  readonly unseen: number;
  readonly turnsMax: number;
}

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
/** These turns make a skill and its caller active, so that every run checks them. */
const FIRST_TURNS: ReadonlyArray<readonly Call[]> = (['one', 'two'] as const).flatMap((name) => [
  [{ ...PLAIN, name }],
  [{ ...PLAIN, name, what: 'admit' as const }],
]);

const signedOver = (store: RecordStore) => registryOver(store, { proofChecker: TEST_SIGNER });

/** A skill becomes active only with the signed proof for its digest. */
function provenLife(open: Open, numRuns: number, turnsMax = Infinity, writesWhole = true): void {
  it('reaches no active skill without the signed proof for its digest, and leaves callers able to run', { timeout }, async () => {
    let [active, callers] = [0, 0];
    const property = fc.asyncProperty(TURNS, async (turns) => {
      const { store, second, close } = await open();
      const registries = [signedOver(store), signedOver(await second(LEXICAL_MODEL))] as const;
      try {
        const lived = await liveThrough(registries, [...FIRST_TURNS, ...turns.slice(0, turnsMax)], writesWhole);
        active += lived.active;
        callers += lived.callers;
      } finally {
        await close();
      }
    });
    await fc.assert(property, { numRuns });
    expect(active).toBeGreaterThanOrEqual(numRuns);
    expect(callers).toBeGreaterThanOrEqual(writesWhole ? 1 : 0);
  });
}

function unseenSkills(open: Open, numRuns: number, stepsMax: number): void {
  it("shows a user nothing that another user's private skills change", { timeout }, async () => {
    const seen = { answers: 0, unseen: 0 };
    const property = fc.asyncProperty(STEPS, async (steps) => {
      const [whole, without] = [await open(), await open()];
      try {
        const counted = await seesNothingOfOthers(registryOver(whole.store), registryOver(without.store), steps.slice(0, stepsMax));
        seen.answers += counted.answers;
        seen.unseen += counted.unseen;
      } finally {
        await whole.close();
        await without.close();
      }
    });
    await fc.assert(property, { numRuns });
    expect(Math.min(seen.answers, seen.unseen)).toBeGreaterThan(numRuns);
  });
}

async function twoRegistries(open: Open) {
  const { store, second, close } = await open();
  const registries: readonly [ProceduralLayer, ProceduralLayer] = [registryOver(store), registryOver(await second(LEXICAL_MODEL))];
  return { registries, close };
}

async function expectHeld(raced: ReadonlyArray<PromiseSettledResult<unknown>>, namesMax: number): Promise<void> {
  const refusals = raced.flatMap((one) => (one.status === 'rejected' ? [(one.reason as Error).message] : []));
  expect(refusals.filter((message) => !message.includes(`max_skills is ${namesMax}`))).toEqual([]);
  expect(refusals).toHaveLength(raced.length - namesMax);
}

/** Skills with code and procedures in words count alike. */
function room(open: Open): void {
  it('limits fifty concurrent new skills over two connections to the maximum of the agent', { timeout }, async () => {
    const { registries, close } = await twoRegistries(open);
    onTestFinished(close);
    const add = (i: number) => {
      const registry = registries[i % 2 === 0 ? 0 : 1];
      const limit = { namesMax: ADDED_MAX };
      if (i % 5 === 0) return registry.storeProcedure(`w${i}`, { ...OWNER, user: null }, `skill_${i}`, `Do ${i}.`, limit);
      return registry.store(skillOf({ name: `skill_${i}` }), limit);
    };
    await expectHeld(await Promise.allSettled(Array.from({ length: RACERS }, (_, i) => add(i))), ADDED_MAX);
    expect(await registries[0].countNames(OWNER)).toBe(ADDED_MAX);
  });
}

function skillProperties(open: Open, { life, unseen, turnsMax }: Runs): void {
  provenLife(open, life, turnsMax);
  unseenSkills(open, unseen, turnsMax);
  room(open);
}

describe('skills in SQLite', () => {
  skillProperties(() => temporaryStore({ model: LEXICAL_MODEL }), { life: 20, unseen: 5, turnsMax: Infinity });
});

/** A store without transactions. It writes only the first change of every third list. */
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

const inArray = (store: RecordStore) => ({ store, second: async () => store, close: async () => undefined });

describe('skills in a store without transactions', () => {
  provenLife(async () => inArray(torn(modelStore())), 30, Infinity, false);
  unseenSkills(async () => inArray(modelStore()), 15, Infinity);

  it('wait until the turn of a lost writer expires', async () => {
    const store = modelStore();
    let [now, writes] = [1_000_000, 0];
    const dying: RecordStore['write'] = async (...args) => {
      writes += 1;
      // The first writer takes its turn and then fails, so that it never ends the turn.
      if (writes === 2 || writes === 3) throw new Error('killed');
      return store.write(...args);
    };
    const registry = registryOver({ ...store, write: dying }, { clock: { now: () => now } });
    await expect(registry.store(skillOf({ name: 'lost' }), { namesMax: 1 })).rejects.toThrow('killed');
    const next = registry.store(skillOf({ name: 'next' }), { namesMax: 1 });
    expect(await Promise.race([next, sleep(100, 'waiting')])).toBe('waiting');
    now += 10_001;
    expect(await next).toMatchObject({ version: 1 });
  });
});

describeOnQdrant({ name: 'skills' }, (server) => {
  skillProperties(reuseOnQdrant(server, LEXICAL_MODEL), { life: 3, unseen: 2, turnsMax: 24 });
});
