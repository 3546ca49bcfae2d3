import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../../test/memory-records.js';
import { proofOf, storeAt } from '../../../test/skill-lives.js';
import { dependencyOn } from '../proof/bundle-code.js';
import {
  approveSkill,
  archiveSkill,
  deprecateSkill,
  recordVerification,
  rejectSkill,
  restoreSkill,
  rollbackSkill,
  settleVerified,
} from './decisions.js';
import { findSkill } from './find-skill.js';
import { keyOf, wasRejectedByPerson } from './skill-life.js';

const AUTOMATIC = { approvalMode: 'automatic', skillRegistrationConfidenceThreshold: 0.9 } as const;
const TENANT = { ...SCOPE, agent: '@tenant' };
const ERROR = { analyser: 'ruff', rule: 'S102', severity: 'error', line: 1, message: 'exec is used' } as const;
const FAILED = { passed: false, evidence: [], reason: 'its tests fail' };
const decision = (at: number) => ({ by: 'ann', reason: 'looked at it', at: NEW_YEAR + at });

let procedural: FakeProceduralMemory;
beforeEach(() => {
  procedural = new FakeProceduralMemory();
});

const stored = (status: SkillStatus, changes: Partial<Skill> = {}) => storeAt(procedural, skillOf({ status, ...changes }));
const version = (letter: string, status: SkillStatus) => stored(status, { code: `print('${letter}')` });
const calling = (called: Skill, name: string, status: SkillStatus) => stored(status, { name, dependencies: [dependencyOn(called)] });
const statuses = async () => (await procedural.versions(SCOPE, 'sum_even')).map(({ status }) => status).toReversed();
const settled = (skill: Skill, settings: Partial<Parameters<typeof settleVerified>[2]> = {}) =>
  settleVerified(procedural, skill, { ...AUTOMATIC, ...settings }, NEW_YEAR + 2);
const passing = (skill: Skill, changes: Parameters<typeof proofOf>[1] = {}) =>
  recordVerification(procedural, skill, { passed: true, evidence: [], reason: '', proof: proofOf(skill, changes) }, NEW_YEAR + 5);
const approve = (skill: Skill, at: number, merge?: Skill) =>
  approveSkill(procedural, skill, { ...decision(at), digest: skill.digest, ...(merge === undefined ? {} : { merge }) });

describe('settleVerified', () => {
  it.each([
    ['automatic', 0.1, 'active', 'approved automatically after verification'],
    ['review', 1, 'pending_review', 'waits for review'],
    ['threshold', 0.9, 'active', 'approved automatically after verification'],
    ['threshold', 0.89, 'pending_review', 'waits for review: its confidence of 0.89 is below 0.90'],
  ] as const)('follows the approval mode %s with a confidence of %d', async (approvalMode, confidence, status, statusReason) => {
    const skill = await passing(await procedural.store(skillOf()), { confidence });
    expect(await settled(skill, { approvalMode })).toMatchObject({ status, statusReason });
  });

  it.each([
    ['is marked', { untrusted: ['it was learned from a page'] }, {}],
    ['has a finding that is an error', {}, { findings: [ERROR] }],
  ])('waits for a person where the skill %s', async (_what, changes, proof) => {
    const waiting = await settled(await passing(await procedural.store(skillOf(changes)), proof));
    expect(waiting).toMatchObject({ status: 'pending_review' });
    expect(await approve(waiting, 3)).toMatchObject({ status: 'active', statusReason: 'looked at it' });
  });

  it('waits for a person after a rejection by a person', async () => {
    const again = async (skill: Skill, at: number) => {
      const move = { key: keyOf(skill), to: 'candidate', by: 'bob', reason: '', at: NEW_YEAR + at } as const;
      const kept = (await procedural.versions(SCOPE, skill.name, 'active')).map(dependencyOn);
      const [candidate = skill] = await procedural.move([move]);
      return settled(await passing(candidate, { kept }));
    };
    const failed = await recordVerification(procedural, await procedural.store(skillOf()), FAILED, NEW_YEAR);
    expect(await again(failed, 1)).toMatchObject({ status: 'active' });
    const unwanted = await rejectSkill(procedural, await version('b', 'candidate'), decision(2));
    const waiting = await again(unwanted, 3);
    expect(waiting).toMatchObject({ status: 'pending_review', statusReason: 'waits for review: somebody rejected it' });
    expect(wasRejectedByPerson(await approve(waiting, 4))).toBe(false);
  });

  it.each(['automatic', 'review'] as const)('rejects a caller of a skill that was archived meanwhile: %s', async (approvalMode) => {
    const called = await stored('active', { name: 'base' });
    const caller = await calling(called, 'caller', 'verified');
    await archiveSkill(procedural, [called], { ...decision(1), reason: 'harmful' });
    expect(await settled(caller, { approvalMode })).toMatchObject({
      status: 'rejected',
      statusReason: expect.stringContaining('caller needs base@1, which is archived (harmful)') as string,
    });
  });

  it('keeps a newer active version', async () => {
    const late = await stored('verified');
    await version('b', 'active');
    expect(await settled(late)).toMatchObject({ statusReason: 'waits for review: version 2 is active already' });
    expect(await statuses()).toEqual(['pending_review', 'active']);
  });
});

it('deprecates an active skill that fails its verification, and removes its proof', async () => {
  const failed = await recordVerification(procedural, await stored('active'), FAILED, NEW_YEAR + 5);
  expect(failed).toMatchObject({ status: 'deprecated', statusReason: 'its tests fail' });
  await expect(rollbackSkill(procedural, failed, { ...decision(6), toVersion: 1 })).rejects.toMatchObject({
    code: 'FAILED_PRECONDITION',
  });
});

describe('approveSkill', () => {
  it('refuses content or a status that was not reviewed', async () => {
    const waiting = await stored('pending_review');
    await expect(approve({ ...waiting, digest: 'f'.repeat(64) }, 1)).rejects.toMatchObject({ code: 'ABORTED' });
    const rejected = await rejectSkill(procedural, waiting, decision(2));
    expect(rejected).toMatchObject({ status: 'rejected', statusReason: 'looked at it' });
    await expect(approve(rejected, 3)).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('replaces the version in use and merges an equal skill', async () => {
    const alike = await stored('active', { name: 'alike' });
    await version('b', 'active');
    const approved = await approve(await stored('pending_review'), 1, alike);
    expect(await statuses()).toEqual(['deprecated', 'active']);
    expect(await procedural.get(SCOPE, 'alike')).toMatchObject({ status: 'deprecated', replacedBy: 'sum_even' });
    expect(await findSkill(procedural, SCOPE, 'alike')).toEqual(approved);
  });

  it('requires the tests of the version in use for an earlier version too', async () => {
    const waiting = await stored('pending_review');
    const present = await version('b', 'active');
    await expect(approve(waiting, 1)).rejects.toMatchObject({
      code: 'ABORTED',
      message: expect.stringContaining('tests of version 2') as string,
    });
    expect(await statuses()).toEqual(['pending_review', 'active']);
    await approve(await passing(waiting, { kept: [dependencyOn(present)] }), 2);
    expect(await statuses()).toEqual(['active', 'deprecated']);
  });

  it('refuses to merge a skill with other readers', async () => {
    const shared = await stored('active', { name: 'shared', scope: TENANT });
    const waiting = await stored('pending_review');
    await expect(approve(waiting, 1, shared)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    await expect(approve(waiting, 1, waiting)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await statuses()).toEqual(['pending_review']);
  });
});

describe('rollbackSkill', () => {
  let present: Skill;
  beforeEach(async () => {
    for (const letter of ['a', 'b', 'c']) present = await version(letter, 'active');
  });
  const back = (at: number, toVersion?: number) => rollbackSkill(procedural, present, { ...decision(at), toVersion });

  it('activates a named version, and a later one again', async () => {
    await back(9, 1);
    expect(await statuses()).toEqual(['active', 'deprecated', 'deprecated']);
    await back(10, 3);
    expect(await statuses()).toEqual(['deprecated', 'deprecated', 'active']);
    await expect(back(11, 8)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('changes nothing on a repeated decision', async () => {
    await back(9);
    expect(await back(9)).toMatchObject({ version: 2, status: 'active' });
    await back(10, 3);
    expect(await back(9)).toMatchObject({ version: 2, status: 'deprecated' });
    expect(await statuses()).toEqual(['deprecated', 'deprecated', 'active']);
  });

  it('takes no other decision of the same millisecond for its own', async () => {
    await rollbackSkill(procedural, present, { ...decision(9), reason: 'too slow' });
    expect(await back(9)).toMatchObject({ version: 1, status: 'active' });
    expect(await back(9, 3)).toMatchObject({ version: 3, status: 'active' });
  });

  it('refuses a version that was never in use or is archived', async () => {
    const waiting = await version('d', 'pending_review');
    await expect(back(9, waiting.version)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    await archiveSkill(procedural, [(await procedural.versions(SCOPE, 'sum_even')).at(2)!], decision(10));
    expect(await back(11)).toMatchObject({ version: 1 });
    await expect(back(12)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  });
});

describe('deprecateSkill', () => {
  it('stores the name of the replacement', async () => {
    const active = await stored('active');
    await stored('active', { name: 'other' });
    const deprecate = (skill: Skill, replacedBy: string) => deprecateSkill(procedural, skill, { ...decision(2), replacedBy });
    await expect(deprecate(active, 'sum_even')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await deprecate(await deprecateSkill(procedural, active, decision(1)), 'other')).toMatchObject({ replacedBy: 'other' });
    await expect(deprecate(await version('c', 'candidate'), 'other')).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('refuses a replacement that its readers can not use', async () => {
    await stored('active', { name: 'second' });
    await stored('pending_review', { name: 'waiting' });
    const shared = await stored('active', { name: 'shared', scope: TENANT });
    for (const replacedBy of ['secnd', 'waiting', 'second'])
      await expect(deprecateSkill(procedural, shared, { ...decision(1), replacedBy })).rejects.toMatchObject({
        code: 'NOT_FOUND',
        message: `there is no active skill "${replacedBy}" that everybody who reads "shared" can use`,
      });
  });
});

it('counts callers of an archived skill in other tenants without their names', async () => {
  const called = await stored('active', { name: 'shared', scope: { ...TENANT, tenant: '@global' } });
  await calling(called, 'private_name', 'active');
  const archiving = archiveSkill(procedural, [called], decision(1));
  await expect(archiving).rejects.toMatchObject({ message: expect.stringContaining('is called by skills of other tenants (1;') as string });
  await expect(archiving).rejects.not.toThrow(/private_name/);
});

describe('restoreSkill', () => {
  it('gives each version its earlier status', async () => {
    const was = ['rejected', 'deprecated', 'active', 'candidate', 'pending_review'] satisfies SkillStatus[];
    for (const [at, status] of was.entries()) await version(String(at), status);
    const archived = await archiveSkill(procedural, await procedural.versions(SCOPE, 'sum_even'), decision(2));
    expect(new Set(await statuses())).toEqual(new Set(['archived']));
    const restored = await restoreSkill(procedural, archived, decision(3));
    expect(await statuses()).toEqual(was);
    await expect(restoreSkill(procedural, restored, decision(4))).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('activates nothing beside another version or without a proof', async () => {
    const archived = await archiveSkill(procedural, [await stored('active')], decision(1));
    await version('b', 'active');
    expect(await restoreSkill(procedural, archived, decision(2))).toMatchObject([{ status: 'deprecated' }]);
    const waiting = await version('c', 'pending_review');
    const gone = await procedural.move([{ key: keyOf(waiting), to: 'archived', proof: null, ...decision(3) }]);
    expect(await restoreSkill(procedural, gone, decision(4))).toMatchObject([{ status: 'candidate' }]);
  });

  it('is the only way from archived to rejected or in review', async () => {
    const active = await stored('active');
    await archiveSkill(procedural, [active], decision(1));
    for (const to of ['rejected', 'pending_review'] as const)
      await expect(procedural.move([{ key: keyOf(active), to, ...decision(2) }])).rejects.toMatchObject({ code: 'ABORTED' });
  });
});
