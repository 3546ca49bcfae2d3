import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { dependencyOn } from '../proof/bundle-code.js';
import { approveSkill, archiveSkill, recordVerification, rejectSkill, settleVerified } from './decisions.js';
import { rollbackSkill } from './rollback-skill.js';
import { findSkill } from './find-skill.js';
import { keyOf, wasRejectedByPerson } from './skill-life.js';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { NEW_YEAR, SCOPE, skillOf } from '../../../test/memory-records.js';
import { proofOf, storeAt } from '../../../test/skill-lives.js';

const READER = { tenant: 'acme', agent: 'coder', user: null };
const AUTOMATIC = { approvalMode: 'automatic', skillRegistrationConfidenceThreshold: 0.9 } as const;
const ERROR = { analyser: 'ruff', rule: 'S102', severity: 'error', line: 1, message: 'exec is used' } as const;
const decision = (at: number) => ({ by: 'ann', reason: 'looked at it', at: NEW_YEAR + at });
const other = (letter: string, changes: Partial<Skill> = {}) => skillOf({ code: `print('${letter}')`, ...changes });

async function statuses(procedural: FakeProceduralMemory, name = 'sum_even') {
  return (await procedural.versions(SCOPE, name)).map(({ status }) => status).toReversed();
}

async function verified(procedural: FakeProceduralMemory, skill: Skill, proof = {}) {
  const stored = await procedural.store(skill);
  return recordVerification(
    procedural,
    stored,
    { passed: true, evidence: ['twice'], reason: '', proof: proofOf(stored, proof) },
    NEW_YEAR + 1,
  );
}

describe('settleVerified', () => {
  it('does as the mode says', async () => {
    const modes = { automatic: 'active', review: 'pending_review', threshold: 'active' } as const;
    for (const [approvalMode, status] of Object.entries(modes)) {
      const procedural = new FakeProceduralMemory();
      const skill = await verified(procedural, skillOf(), { confidence: 0.9 });
      const settings = { approvalMode: approvalMode as keyof typeof modes, skillRegistrationConfidenceThreshold: 0.9 };
      expect(await settleVerified(procedural, skill, settings, NEW_YEAR + 2)).toMatchObject({ status });
    }
  });

  it('leaves what is below the threshold to a person, and says so', async () => {
    const procedural = new FakeProceduralMemory();
    const skill = await verified(procedural, skillOf(), { confidence: 0.89 });
    const settings = { approvalMode: 'threshold', skillRegistrationConfidenceThreshold: 0.9 } as const;
    expect(await settleVerified(procedural, skill, settings, NEW_YEAR + 2)).toMatchObject({
      status: 'pending_review',
      statusReason: 'waits for review: its confidence of 0.89 is below 0.90',
    });
  });

  it('approves by itself nothing that is marked or has a finding that is an error', async () => {
    const cases = [verifiedWith({ untrusted: ['it was learned from a page'] }, {}), verifiedWith({}, { findings: [ERROR] })];
    for (const make of cases) {
      const procedural = new FakeProceduralMemory();
      const skill = await make(procedural);
      const waiting = await settleVerified(procedural, skill, AUTOMATIC, NEW_YEAR + 2);
      expect(waiting).toMatchObject({ status: 'pending_review' });
      const approved = await approveSkill(procedural, waiting, { ...decision(3), digest: waiting.digest });
      expect(approved).toMatchObject({ status: 'active', statusReason: 'looked at it' });
    }
  });

  it('approves by itself nothing that somebody rejected, until somebody approves it', async () => {
    const procedural = new FakeProceduralMemory();
    const again = async (skill: Skill, at: number) => {
      const [candidate] = await procedural.move([{ key: keyOf(skill), to: 'candidate', by: 'bob', reason: '', at: NEW_YEAR + at }]);
      if (candidate === undefined) throw new Error('nothing moved');
      const kept = (await procedural.versions(SCOPE, skill.name, 'active')).map(dependencyOn);
      const found = { passed: true, evidence: [], reason: '', proof: proofOf(candidate, { kept }) };
      const back = await recordVerification(procedural, candidate, found, NEW_YEAR + at);
      return settleVerified(procedural, back, AUTOMATIC, NEW_YEAR + at);
    };
    const failed = await recordVerification(
      procedural,
      await procedural.store(skillOf()),
      { passed: false, evidence: [], reason: 'its tests fail' },
      NEW_YEAR,
    );
    expect(await again(failed, 1)).toMatchObject({ status: 'active' });
    const unwanted = await rejectSkill(procedural, await procedural.store(other('b')), decision(2));
    const waiting = await again(unwanted, 3);
    expect(waiting).toMatchObject({ status: 'pending_review', statusReason: 'waits for review: somebody rejected it' });
    const approved = await approveSkill(procedural, waiting, { ...decision(4), digest: waiting.digest });
    expect(wasRejectedByPerson(approved)).toBe(false);
  });

  it.each(['automatic', 'review'] as const)(
    'rejects what calls a skill that was archived while it was verified: %s',
    async (approvalMode) => {
      const procedural = new FakeProceduralMemory();
      const called = await storeAt(procedural, skillOf({ name: 'base', status: 'active' }));
      const caller = await storeAt(procedural, skillOf({ name: 'caller', status: 'verified', dependencies: [dependencyOn(called)] }));
      await archiveSkill(procedural, [called], { ...decision(1), reason: 'harmful' });
      expect(await settleVerified(procedural, caller, { ...AUTOMATIC, approvalMode }, NEW_YEAR + 2)).toMatchObject({
        status: 'rejected',
        statusReason: expect.stringContaining('caller needs base@1, which is archived (harmful)') as string,
      });
    },
  );

  it('takes no newer version away', async () => {
    const procedural = new FakeProceduralMemory();
    const late = await verified(procedural, skillOf());
    await storeAt(procedural, other('b', { status: 'active' }));
    expect(await settleVerified(procedural, late, AUTOMATIC, NEW_YEAR + 2)).toMatchObject({
      status: 'pending_review',
      statusReason: 'waits for review: version 2 is active already',
    });
    expect(await statuses(procedural)).toEqual(['pending_review', 'active']);
  });
});

const verifiedWith = (changes: Partial<Skill>, proof: object) => (procedural: FakeProceduralMemory) =>
  verified(procedural, skillOf(changes), proof);

describe('recordVerification again', () => {
  it('keeps what is in use with its new proof', async () => {
    const procedural = new FakeProceduralMemory();
    const active = await storeAt(procedural, skillOf({ status: 'active' }));
    const proof = proofOf(active, { verifiedAt: NEW_YEAR + 5 });
    const again = await recordVerification(procedural, active, { passed: true, evidence: [], reason: '', proof }, NEW_YEAR + 5);
    expect(again).toMatchObject({ status: 'active', proof });
  });

  it('deprecates what fails, and believes its old proof no more', async () => {
    const procedural = new FakeProceduralMemory();
    const active = await storeAt(procedural, skillOf({ status: 'active' }));
    const failed = await recordVerification(procedural, active, { passed: false, evidence: [], reason: 'its tests fail' }, NEW_YEAR + 5);
    expect(failed).toMatchObject({ status: 'deprecated', statusReason: 'its tests fail' });
    await storeAt(procedural, other('b', { status: 'active' }));
    await expect(rollbackSkill(procedural, failed, { ...decision(6), toVersion: 1 })).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
    });
    const newError = proofOf(active, { findings: [ERROR] });
    const second = (await procedural.versions(SCOPE, 'sum_even')).at(0)!;
    const proof = { ...newError, digest: second.digest };
    expect(await recordVerification(procedural, second, { passed: true, evidence: [], reason: '', proof }, NEW_YEAR + 7)).toMatchObject({
      status: 'deprecated',
      statusReason: 'verification finds: ruff S102: exec is used',
    });
  });
});

describe('approveSkill', () => {
  it('refuses what was not reviewed', async () => {
    const procedural = new FakeProceduralMemory();
    const waiting = await storeAt(procedural, skillOf({ status: 'pending_review' }));
    await expect(approveSkill(procedural, waiting, { ...decision(1), digest: 'f'.repeat(64) })).rejects.toMatchObject({ code: 'ABORTED' });
    const rejected = await rejectSkill(procedural, waiting, decision(2));
    expect(rejected).toMatchObject({ status: 'rejected', statusReason: 'looked at it' });
    await expect(approveSkill(procedural, rejected, { ...decision(3), digest: rejected.digest })).rejects.toMatchObject({
      code: 'ABORTED',
    });
  });

  it('replaces the version in use, and merges a skill that does the same', async () => {
    const procedural = new FakeProceduralMemory();
    const alike = await storeAt(procedural, skillOf({ name: 'alike', status: 'active' }));
    const present = await storeAt(procedural, other('b', { status: 'active' }));
    const proof = (stored: Skill) => proofOf(stored, { kept: [dependencyOn(present)] });
    const waiting = await storeAt(procedural, skillOf({ status: 'pending_review' }), { proof });
    const approved = await approveSkill(procedural, waiting, { ...decision(1), digest: waiting.digest, merge: alike });
    expect(await statuses(procedural)).toEqual(['deprecated', 'active']);
    expect(await procedural.get(READER, 'alike')).toMatchObject({ status: 'deprecated', replacedBy: 'sum_even' });
    expect(await findSkill(procedural, READER, 'alike')).toEqual(approved);
  });

  it('holds an earlier version, too, to the tests of the one that is in use by now', async () => {
    const procedural = new FakeProceduralMemory();
    const waiting = await storeAt(procedural, skillOf({ status: 'pending_review' }));
    const present = await storeAt(procedural, other('b', { status: 'active' }));
    const approve = (skill: Skill) => approveSkill(procedural, skill, { ...decision(1), digest: skill.digest });
    await expect(approve(waiting)).rejects.toMatchObject({
      code: 'ABORTED',
      message: expect.stringContaining('tests of version 2') as string,
    });
    expect(await statuses(procedural)).toEqual(['pending_review', 'active']);
    const held = { passed: true, evidence: [], reason: '', proof: proofOf(waiting, { kept: [dependencyOn(present)] }) };
    await approve(await recordVerification(procedural, waiting, held, NEW_YEAR + 2));
    expect(await statuses(procedural)).toEqual(['active', 'deprecated']);
  });

  it('merges nothing that others read', async () => {
    const procedural = new FakeProceduralMemory();
    const shared = await storeAt(procedural, skillOf({ name: 'shared', status: 'active', scope: { ...SCOPE, agent: '@tenant' } }));
    const waiting = await storeAt(procedural, skillOf({ status: 'pending_review' }));
    const merge = (skill: Skill) => approveSkill(procedural, waiting, { ...decision(1), digest: waiting.digest, merge: skill });
    await expect(merge(shared)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
    await expect(merge(waiting)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await statuses(procedural)).toEqual(['pending_review']);
  });
});

async function threeVersions() {
  const procedural = new FakeProceduralMemory();
  for (const letter of ['a', 'b', 'c']) {
    const skill = await verified(procedural, other(letter));
    await settleVerified(procedural, skill, AUTOMATIC, NEW_YEAR + skill.version + 1);
  }
  const present = (await procedural.get(READER, 'sum_even'))!;
  return { procedural, present };
}

describe('rollbackSkill', () => {
  it('brings the version before back in one call', async () => {
    const { procedural, present } = await threeVersions();
    expect(await rollbackSkill(procedural, present, decision(9))).toMatchObject({ version: 2, status: 'active' });
    expect(await statuses(procedural)).toEqual(['deprecated', 'active', 'deprecated']);
    expect((await findSkill(procedural, READER, 'sum_even'))?.version).toBe(2);
  });

  it('brings a named one back, and forward again', async () => {
    const { procedural, present } = await threeVersions();
    await rollbackSkill(procedural, present, { ...decision(9), toVersion: 1 });
    expect(await statuses(procedural)).toEqual(['active', 'deprecated', 'deprecated']);
    await rollbackSkill(procedural, present, { ...decision(10), toVersion: 3 });
    expect(await statuses(procedural)).toEqual(['deprecated', 'deprecated', 'active']);
    await expect(rollbackSkill(procedural, present, { ...decision(11), toVersion: 8 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('changes nothing where the same decision comes again, nor where another version is in use than was meant', async () => {
    const { procedural, present } = await threeVersions();
    await rollbackSkill(procedural, present, decision(9));
    expect(await rollbackSkill(procedural, present, { ...decision(9), inUse: 3 })).toMatchObject({ version: 2, status: 'active' });
    await rollbackSkill(procedural, present, { ...decision(10), toVersion: 3 });
    expect(await rollbackSkill(procedural, present, { ...decision(9), inUse: 3 })).toMatchObject({ version: 2, status: 'deprecated' });
    await expect(rollbackSkill(procedural, present, { ...decision(11), inUse: 2 })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await statuses(procedural)).toEqual(['deprecated', 'deprecated', 'active']);
  });

  it('goes on where a crash has left it', async () => {
    const whole = await threeVersions();
    const versions = await whole.procedural.versions(SCOPE, 'sum_even');
    const torn = versions.map((skill) => (skill.version === 2 ? { ...skill, status: 'active' as const } : skill));
    const procedural = new FakeProceduralMemory().keep(...torn);
    expect(await statuses(procedural)).toEqual(['deprecated', 'active', 'active']);
    expect(await rollbackSkill(procedural, whole.present, { ...decision(9), toVersion: 2 })).toMatchObject({ version: 2 });
    expect(await statuses(procedural)).toEqual(['deprecated', 'active', 'deprecated']);
  });

  it('takes nothing that was never in use, or was put out of sight', async () => {
    const { procedural, present } = await threeVersions();
    const waiting = await storeAt(procedural, other('d', { status: 'pending_review' }));
    await expect(rollbackSkill(procedural, present, { ...decision(9), toVersion: waiting.version })).rejects.toMatchObject({
      code: 'FAILED_PRECONDITION',
    });
    const second = (await procedural.versions(SCOPE, 'sum_even')).at(2)!;
    await archiveSkill(procedural, [second], decision(10));
    const first = await rollbackSkill(procedural, present, decision(11));
    expect(first).toMatchObject({ version: 1 });
    await expect(rollbackSkill(procedural, first, decision(12))).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' });
  });
});
