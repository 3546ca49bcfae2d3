import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { archiveSkill } from '@etude/domain/skills/life/decisions';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { NEW_YEAR, SCOPE, skillOf } from '@etude/domain/testing/memory-records';
import { moveOf, storeAt } from '@etude/domain/testing/skill-lives';
import { expect, it } from 'vitest';
import { modelStore } from '../../test/model-store.js';
import type { RecordStore } from '../record-store.js';
import { memoryOver } from '../open-memory.js';

const NOW = NEW_YEAR + 1_000;
const BY = { by: 'ann', reason: '', at: NEW_YEAR + 100 };

/** Over a store without transactions; its next writer does `meanwhile` first, and is killed once `changes` of its changes are written. */
function registryWithKilled() {
  const store = modelStore();
  let next: { meanwhile: () => Promise<unknown>; changes: number } | null = null;
  const write: RecordStore['write'] = async (tenant, changes) => {
    const killed = next;
    next = null;
    if (killed === null) return store.write(tenant, changes);
    await killed.meanwhile();
    await store.write(tenant, changes.slice(0, killed.changes));
    throw new Error('killed');
  };
  const memory = memoryOver({ ...store, write }, { embedder: new LexicalEmbedder(), clock: { now: () => NOW } });
  const statuses = async (name: string) =>
    (await memory.procedural.versions(SCOPE, name)).map(({ version, status }) => `${name}@${version} ${status}`);
  return {
    ...memory,
    statuses,
    kill: (meanwhile: () => Promise<unknown>, changes = Infinity) => (next = { meanwhile, changes }),
  };
}

async function callerLeftBehind(isSuccessor: boolean) {
  const memory = registryWithKilled();
  const { procedural, kill } = memory;
  const base = await storeAt(procedural, skillOf({ name: 'base', status: 'active' }));
  const first = isSuccessor ? [await storeAt(procedural, skillOf({ name: 'top', status: 'active' }))] : [];
  const top = await storeAt(procedural, skillOf({ name: 'top', status: 'verified', dependencies: [dependencyOn(base)] }));
  kill(() => archiveSkill(procedural, [base], BY));
  const moves = [{ ...BY, key: keyOf(top), to: 'active' } as const, ...first.map((one) => moveOf(one, 'deprecated', BY))];
  await expect(procedural.move(moves)).rejects.toThrow('killed');
  return memory;
}

it('takes out of use what a killed writer left there without what it calls', async () => {
  const { upkeep, statuses } = await callerLeftBehind(false);
  expect(await statuses('top')).toEqual(['top@1 active']);
  const { checked, repaired, problems } = await upkeep.reconcile();
  expect(await statuses('top')).toEqual(['top@1 deprecated']);
  expect({ checked, problems }).toEqual({ checked: expect.objectContaining({ skills: 1 }), problems: [] });
  expect(repaired).toEqual([
    expect.stringMatching(/^skill top@1 of "\w+" in acme, which was active and could not run, is deprecated now: .*base@1.*archived/),
  ]);
  expect(await upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
});

it('brings back the version whose place such a caller took', async () => {
  const { upkeep, statuses } = await callerLeftBehind(true);
  expect(await statuses('top')).toEqual(['top@2 active', 'top@1 deprecated']);
  expect((await upkeep.reconcile()).repaired).toHaveLength(2);
  expect(await statuses('top')).toEqual(['top@2 deprecated', 'top@1 active']);
  expect(await upkeep.reconcile()).toMatchObject({ repaired: [], problems: [] });
});

it('brings nothing back that went out of use by a decision of its own', async () => {
  const { upkeep, statuses, procedural } = await callerLeftBehind(false);
  const other = await storeAt(procedural, skillOf({ name: 'other', status: 'active' }));
  await procedural.move([moveOf(other, 'deprecated', { at: BY.at + 1, replacedBy: 'top' })]);
  await upkeep.reconcile();
  expect([await statuses('other'), await statuses('top')]).toEqual([['other@1 deprecated'], ['top@1 deprecated']]);
});

it('leaves one of two versions in use that a killed writer left there', async () => {
  const { procedural, upkeep, statuses, kill } = registryWithKilled();
  const first = await storeAt(procedural, skillOf({ name: 'top', status: 'active' }));
  const second = await storeAt(procedural, skillOf({ name: 'top', status: 'verified', code: 'def top(x):\n    return 2 * x\n' }));
  kill(async () => {}, 1);
  const moves = [{ ...BY, key: keyOf(second), to: 'active' } as const, moveOf(first, 'deprecated', BY)];
  await expect(procedural.move(moves)).rejects.toThrow('killed');
  expect(await statuses('top')).toEqual(['top@2 active', 'top@1 active']);
  expect((await upkeep.reconcile()).repaired).toEqual([expect.stringContaining('of several versions of skill top@')]);
  expect(await statuses('top')).toEqual(['top@2 active', 'top@1 deprecated']);
});

it('keeps in use, and reports, what calls a version that is being verified again', async () => {
  const { procedural, upkeep, statuses } = registryWithKilled();
  const base = await storeAt(procedural, skillOf({ name: 'base', status: 'deprecated' }));
  await storeAt(procedural, skillOf({ name: 'top', status: 'active', dependencies: [dependencyOn(base)] }));
  await procedural.move([moveOf(base, 'candidate', { proof: null })]);
  const { repaired, problems } = await upkeep.reconcile();
  expect({ repaired, problems }).toEqual({ repaired: [], problems: [expect.stringContaining('top@1 of')] });
  expect(problems[0]).toContain("is active and can't run");
  expect(await statuses('top')).toEqual(['top@1 active']);
});
