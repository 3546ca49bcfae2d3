import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../../test/memory-records.js';
import { storeAt } from '../../../test/skill-lives.js';
import { dependencyOn } from '../proof/bundle-code.js';
import { archivedLast, archiveSkill, deprecateSkill, restoreSkill } from './decisions.js';
import { keyOf } from './skill-life.js';

const TENANT = { tenant: SCOPE.tenant, agent: '@tenant', user: null };
const decision = (at: number) => ({ by: 'ann', reason: 'looked at it', at: NEW_YEAR + at });
const other = (letter: string, changes: Partial<Skill> = {}) => skillOf({ code: `print('${letter}')`, ...changes });

async function statuses(procedural: FakeProceduralMemory, name = 'sum_even') {
  return (await procedural.versions(SCOPE, name)).map(({ status }) => status).toReversed();
}

describe('deprecateSkill', () => {
  it('names what is used in its place', async () => {
    const procedural = new FakeProceduralMemory();
    const active = await storeAt(procedural, skillOf({ status: 'active' }));
    await storeAt(procedural, skillOf({ name: 'other', status: 'active' }));
    await expect(deprecateSkill(procedural, active, { ...decision(1), replacedBy: 'sum_even' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    const retired = await deprecateSkill(procedural, active, decision(1));
    expect(await deprecateSkill(procedural, retired, { ...decision(2), replacedBy: 'other' })).toMatchObject({ replacedBy: 'other' });
    await expect(deprecateSkill(procedural, await procedural.store(other('c')), decision(3))).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('names nothing that its readers can not use, and leads nobody in a circle', async () => {
    const procedural = new FakeProceduralMemory();
    const first = await storeAt(procedural, skillOf({ name: 'first', status: 'active' }));
    const second = await storeAt(procedural, skillOf({ name: 'second', status: 'active' }));
    const shared = await storeAt(procedural, skillOf({ name: 'shared', status: 'active', scope: TENANT }));
    await storeAt(procedural, skillOf({ name: 'waiting', status: 'pending_review' }));
    const replace = (skill: Skill, replacedBy: string) => deprecateSkill(procedural, skill, { ...decision(1), replacedBy });
    await expect(replace(first, 'secnd')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'there is no active skill "secnd" that everybody who reads "first" can use',
    });
    await expect(replace(first, 'waiting')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(replace(shared, 'second')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await replace(first, 'second')).toMatchObject({ replacedBy: 'second' });
    await expect(replace(second, 'first')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await replace(second, 'shared')).toMatchObject({ replacedBy: 'shared' });
  });
});

describe('archiveSkill', () => {
  it('leaves what others call, and says who they are', async () => {
    const procedural = new FakeProceduralMemory();
    const called = await storeAt(procedural, skillOf({ status: 'active' }));
    const next = await storeAt(procedural, other('b', { status: 'pending_review' }));
    const dependencies = [dependencyOn(called)];
    const caller = await storeAt(procedural, skillOf({ name: 'caller', status: 'active', dependencies }));
    await expect(archiveSkill(procedural, [next, called], decision(1))).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('is called by caller@1 of "coder" (active); archive its callers first') as string,
    });
    expect(await statuses(procedural)).toEqual(['active', 'pending_review']);
    expect(await archiveSkill(procedural, [next], decision(2))).toMatchObject([{ status: 'archived' }]);
    await archiveSkill(procedural, [caller], decision(3));
    expect(await archiveSkill(procedural, [called], decision(4))).toMatchObject([{ status: 'archived' }]);
  });

  it('counts the callers that single tenants have of what everybody may call, and names none', async () => {
    const procedural = new FakeProceduralMemory();
    const called = await storeAt(procedural, skillOf({ name: 'shared', status: 'active', scope: { ...TENANT, tenant: '@global' } }));
    const dependencies = [dependencyOn(called)];
    await storeAt(procedural, skillOf({ name: 'private_name', status: 'active', dependencies }));
    const archiving = archiveSkill(procedural, [called], decision(1));
    await expect(archiving).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('is called by 1 of single tenants') as string,
    });
    await expect(archiving).rejects.not.toThrow(/private_name/);
  });

  it('leaves what is called through a version that is no longer in use', async () => {
    const procedural = new FakeProceduralMemory();
    const deepest = await storeAt(procedural, skillOf({ name: 'deepest', status: 'active' }));
    const between = await storeAt(procedural, skillOf({ name: 'between', status: 'deprecated', dependencies: [dependencyOn(deepest)] }));
    await storeAt(procedural, skillOf({ name: 'beside', status: 'rejected', dependencies: [dependencyOn(deepest)] }));
    const caller = await storeAt(procedural, skillOf({ name: 'caller', status: 'active', dependencies: [dependencyOn(between)] }));
    await expect(archiveSkill(procedural, [deepest], decision(1))).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('is called by caller@1 of "coder" (active); archive its callers') as string,
    });
    await archiveSkill(procedural, [caller], decision(2));
    expect(await archiveSkill(procedural, [deepest], decision(3))).toMatchObject([{ status: 'archived' }]);
  });
});

describe('restoreSkill', () => {
  it('gives each version back what it was', async () => {
    const procedural = new FakeProceduralMemory();
    const was = ['rejected', 'deprecated', 'active', 'candidate', 'pending_review'] satisfies SkillStatus[];
    for (const [at, status] of was.entries()) await storeAt(procedural, other(String(at), { status }));
    const early = await storeAt(procedural, other('early', { status: 'pending_review' }));
    await archiveSkill(procedural, [early], decision(1));
    await archiveSkill(procedural, await procedural.versions(SCOPE, 'sum_even'), decision(2));
    expect(new Set(await statuses(procedural))).toEqual(new Set(['archived']));
    const last = archivedLast(await procedural.versions(SCOPE, 'sum_even'));
    await restoreSkill(procedural, last, decision(3));
    expect(await statuses(procedural)).toEqual([...was, 'archived']);
    await expect(
      restoreSkill(
        procedural,
        last.slice(0, 1).map((one) => ({ ...one, status: 'active' as const })),
        decision(4),
      ),
    ).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('brings nothing back into use where another version is, or without its proof', async () => {
    const procedural = new FakeProceduralMemory();
    const active = await storeAt(procedural, skillOf({ status: 'active' }));
    const archived = await archiveSkill(procedural, [active], decision(1));
    await storeAt(procedural, other('b', { status: 'active' }));
    expect(await restoreSkill(procedural, archived, decision(2))).toMatchObject([{ status: 'deprecated' }]);
    const waiting = await storeAt(procedural, other('c', { status: 'pending_review' }));
    const gone = await procedural.move([{ key: keyOf(waiting), to: 'archived', proof: null, ...decision(3) }]);
    expect(await restoreSkill(procedural, gone, decision(4))).toMatchObject([{ status: 'candidate' }]);
  });

  it('is the only way from the archive to being rejected or reviewed', async () => {
    const procedural = new FakeProceduralMemory();
    const active = await storeAt(procedural, skillOf({ status: 'active' }));
    await archiveSkill(procedural, [active], decision(1));
    for (const to of ['rejected', 'pending_review'] as const)
      await expect(procedural.move([{ key: keyOf(active), to, ...decision(2) }])).rejects.toMatchObject({ code: 'ABORTED' });
  });
});
