import { EtudeError, isRetryable } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { SKILL_STATUSES, type SkillStatus } from '@etude/contracts/skill-proof';
import { describe, expect, it } from 'vitest';
import type { ProceduralMemory } from '../../ports/memory.js';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { admitSkill, settledStatus } from './admit-skill.js';
import { admissionDeps, candidate, scope } from '../../../test/admission-fixture.js';
import { skillDigest } from '../content-digest.js';
import { keyOf } from '../life/skill-life.js';

const signal = new AbortController().signal;
class Crash extends Error {}

/** A memory of these skills that throws after the n-th move, if `dieAfter` is called. */
function memoryOf(...skills: Skill[]) {
  const procedural = new FakeProceduralMemory().keep(...skills);
  let changesLeft = Number.POSITIVE_INFINITY;
  const move = procedural.move.bind(procedural);
  procedural.move = async (moves) => {
    const moved = await move(moves);
    changesLeft -= 1;
    if (changesLeft === 0) throw new Crash();
    return moved;
  };
  const statuses = async () => (await procedural.versions(scope, candidate().name)).map(({ status }) => status).toReversed();
  return { procedural, statuses, dieAfter: (changes: number) => (changesLeft = changes) };
}

const admit = (skill: Skill, procedural: ProceduralMemory) => admitSkill(keyOf(skill), admissionDeps(procedural), signal);

describe('admitSkill', () => {
  it('ends in the same state after a crash at any move', async () => {
    const better = candidate({ version: 2, code: 'n = int(input())\nprint(n + n)' });
    for (const death of [1, 2]) {
      const { procedural, statuses, dieAfter } = memoryOf(candidate({ status: 'active' }), better);
      dieAfter(death);
      await expect(admit(better, procedural)).rejects.toBeInstanceOf(Crash);
      dieAfter(Number.POSITIVE_INFINITY);
      await admit(better, procedural);
      expect(await statuses()).toEqual(['deprecated', 'active']);
    }
  });

  it('throws a retryable error where another decision was faster', async () => {
    const { procedural } = memoryOf(candidate());
    const move = procedural.move.bind(procedural);
    procedural.move = () => Promise.reject(new EtudeError('ABORTED', 'version 9 became active meanwhile'));
    const error: unknown = await admit(candidate(), procedural).catch((thrown: unknown) => thrown);
    expect(isRetryable(error)).toBe(true);
    procedural.move = move;
    expect(await admit(candidate(), procedural)).toMatchObject({ status: 'active' });
  });

  it('refuses another digest or version than the request names', async () => {
    const { procedural } = memoryOf(candidate());
    await expect(admit(candidate({ digest: 'f'.repeat(64) }), procedural)).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(admit(candidate({ version: 7 }), procedural)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

const ofUser = (user: string, status: SkillStatus) => candidate({ scope: { ...scope, user }, status });

describe('settledStatus', () => {
  it('is null until verification and approval are over', async () => {
    for (const status of SKILL_STATUSES) {
      const { procedural } = memoryOf(candidate({ status }), candidate({ version: 2, digest: 'e'.repeat(64) }));
      expect(await settledStatus(procedural, candidate())).toBe(status === 'candidate' || status === 'verified' ? null : status);
    }
  });

  it("ignores another user's skill", async () => {
    const { procedural } = memoryOf(ofUser('ann', 'active'), { ...ofUser('bob', 'candidate'), version: 2 });
    expect(await settledStatus(procedural, ofUser('ann', 'candidate'))).toBe('active');
    expect(await settledStatus(procedural, ofUser('bob', 'candidate'))).toBeNull();
  });
});

describe('verification again', () => {
  it('runs for a new round or an unknown key, and keeps a passing skill active', async () => {
    const { procedural } = memoryOf(candidate());
    const deps = { ...admissionDeps(procedural), clock: { now: () => (now += 1) } };
    let now = 100;
    const key = keyOf(candidate());
    const first = await admitSkill(key, deps, signal);
    expect((await admitSkill(key, deps, signal)).proof).toEqual(first.proof);
    const second = await admitSkill({ ...key, round: 2 }, deps, signal);
    expect(second).toMatchObject({ status: 'active' });
    expect(second.proof?.verifiedAt).toBeGreaterThan(first.proof?.verifiedAt ?? 0);
    const rotated = { keyId: 'next', sign: (text: string) => `next ${text.length}` };
    const checker = { isSigned: (text: string, keyId: string, signature: string) => keyId === 'next' && signature === rotated.sign(text) };
    expect(await admitSkill(key, { ...deps, signer: rotated, checker }, signal)).toMatchObject({
      status: 'active',
      proof: { keyId: 'next' },
    });
  });

  it('rejects a caller of a withdrawn skill without a system error', async () => {
    const gone = { name: 'gone', tenant: 'acme', agent: 'solver', user: null, version: 1, digest: 'f'.repeat(64) };
    const calling = { ...candidate(), dependencies: [gone] };
    const skill = { ...calling, digest: skillDigest(calling) };
    const { procedural } = memoryOf(skill);
    expect(await admitSkill(keyOf(skill), admissionDeps(procedural), signal)).toMatchObject({
      status: 'rejected',
      statusReason: expect.stringContaining('gone@1'),
    });
  });
});
