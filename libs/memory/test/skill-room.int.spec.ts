import type { Skill } from '@etude/contracts/memory';
import { restoreSkill } from '@etude/domain/skills/life/decisions';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { skillOf } from '@etude/domain/testing/memory-records';
import { expect, it, onTestFinished } from 'vitest';
import type { Change, RecordStore } from '../src/record-store.js';
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

it('holds the place of what a lost writer was restoring, until it is restored or a while is over', async () => {
  let now = 1_000_000;
  const store = modelStore();
  const registry = registryOver(dyingAt(store, 1), { clock: { now: () => now } });
  const one = await registry.store(skillOf({ name: 'one' }), { setAside: 'imported' });
  const two = await registry.store(skillOf({ name: 'two' }), { setAside: 'imported' });
  const restore = (skill: Skill) => restoreSkill(registry, [skill], { ...BY, namesMax: 1 });
  await expect(restore(one)).rejects.toThrow('killed');
  await expect(restore(two)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  expect(await restore(one)).toMatchObject([{ status: 'candidate' }]);
  await registry.move([{ ...BY, key: keyOf(one), to: 'archived', at: 10 }]);
  expect(await restore(two)).toMatchObject([{ status: 'candidate' }]);
  await registry.move([{ ...BY, key: keyOf(two), to: 'archived', at: 11 }]);
  const late = registryOver(dyingAt(store, 1), { clock: { now: () => now } });
  await expect(restoreSkill(late, [one], { ...BY, at: 12, namesMax: 1 })).rejects.toThrow('killed');
  await expect(registry.store(skillOf({ name: 'three' }), { namesMax: 1 })).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  now += 60_001;
  expect(await registry.store(skillOf({ name: 'three' }), { namesMax: 1 })).toMatchObject({ version: 1 });
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
  let now = 1_000_000;
  const clock = { now: () => now };
  const registry = registryOver(dyingAt(store, 2), { clock });
  const register = (name: string) => registry.store(skillOf({ name }), { namesMax: 2 });
  await register('one');
  await expect(register('two')).rejects.toThrow('killed');
  await expect(register('three')).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  expect(await register('two')).toMatchObject({ version: 1 });
  const other = registryOver(dyingAt(modelStore(), 1), { clock });
  await expect(other.store(skillOf({ name: 'lost' }), { namesMax: 1 })).rejects.toThrow('killed');
  await expect(other.store(skillOf({ name: 'next' }), { namesMax: 1 })).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  now += 60_001;
  expect(await other.store(skillOf({ name: 'next' }), { namesMax: 1 })).toMatchObject({ version: 1 });
});

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
