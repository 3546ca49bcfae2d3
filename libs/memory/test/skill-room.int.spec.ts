import { setTimeout as sleep } from 'node:timers/promises';
import type { Skill } from '@etude/contracts/memory';
import { restoreSkill } from '@etude/domain/skills/life/decisions';
import { skillOf } from '@etude/domain/testing/memory-records';
import { expect, it, onTestFinished } from 'vitest';
import type { RecordStore } from '../src/record-store.js';
import { describeOnQdrant } from './describe-on-qdrant.js';
import { LEXICAL_MODEL, registryOver } from './lexical-registry.js';
import { modelStore } from './model-store.js';
import { openOnQdrant } from './qdrant-under-test.js';
import { temporaryStore } from './temporary-store.js';

const TIMEOUT_MS = 240_000;
const OWNER = { tenant: 'acme', agent: 'coder' };
const RACERS = 50;
const BACK = 12;
const BY = { by: 'ann', reason: '', at: 9 };

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
  const { store, second, close } = await temporaryStore({ model: LEXICAL_MODEL });
  onTestFinished(close);
  expect(await race([store, await second(LEXICAL_MODEL)], 7)).toBe(7);
});

/** Restores what came in archived, by turns over two registries: how many names are back. */
async function raceBack(stores: readonly [RecordStore, RecordStore], namesMax: number): Promise<number> {
  const registries = [registryOver(stores[0]), registryOver(stores[1])] as const;
  const stored: Skill[] = [];
  for (let i = 0; i < BACK; i += 1) stored.push(await registries[0].store(skillOf({ name: `skill_${i}` }), { setAside: 'imported' }));
  const decision = { ...BY, namesMax };
  const raced = await Promise.allSettled(stored.map((skill, i) => restoreSkill(registries[i % 2 === 0 ? 0 : 1], [skill], decision)));
  const refusals = raced.flatMap((one) => (one.status === 'rejected' ? [(one.reason as Error).message] : []));
  expect(refusals.filter((message) => !message.includes(`max_skills is ${namesMax}`))).toEqual([]);
  expect(refusals).toHaveLength(BACK - namesMax);
  return registries[0].countNames(OWNER, BACK);
}

it('holds what is restored at once over two registries to what an agent may have, in SQLite', { timeout: TIMEOUT_MS }, async () => {
  const { store, second, close } = await temporaryStore({ model: LEXICAL_MODEL });
  onTestFinished(close);
  expect(await raceBack([store, await second(LEXICAL_MODEL)], 3)).toBe(3);
});

it('waits for the turn of a lost writer until that is over', async () => {
  const store = modelStore();
  let now = 1_000_000;
  const registry = registryOver({ ...store, write: dyingBehindItsTurn(store) }, { clock: { now: () => now } });
  await expect(registry.store(skillOf({ name: 'lost' }), { namesMax: 1 })).rejects.toThrow('killed');
  const next = registry.store(skillOf({ name: 'next' }), { namesMax: 1 });
  expect(await Promise.race([next, sleep(100, 'waiting')])).toBe('waiting');
  now += 10_001;
  expect(await next).toMatchObject({ version: 1 });
});

/** The first writer takes its turn, and dies. */
function dyingBehindItsTurn(store: RecordStore): RecordStore['write'] {
  let writes = 0;
  return async (...args) => {
    writes += 1;
    if (writes === 2 || writes === 3) throw new Error('killed');
    return store.write(...args);
  };
}

describeOnQdrant({ name: 'room for skills' }, (server) => {
  it('holds what is restored at once to what an agent may have, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const { store, close } = await openOnQdrant(server, LEXICAL_MODEL)();
    onTestFinished(close);
    expect(await raceBack([store, store], 3)).toBe(3);
  });

  it('holds fifty at once to what an agent may have, without transactions', { timeout: TIMEOUT_MS }, async () => {
    const { store, close } = await openOnQdrant(server, LEXICAL_MODEL)();
    onTestFinished(close);
    expect(await race([store, store], 7)).toBe(7);
  });
});
