import { EtudeError, isRetryable } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import { ProceduralMemorySettings, SKILL_STATUSES, type SkillStatus } from '@etude/contracts/skill-proof';
import { describe, expect, it } from 'vitest';
import type { ProceduralMemory } from '../../ports/memory.js';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { type AdmissionDeps, admitSkill, checkSkill, examineSkill, reverifyDependents, settledStatus } from './admit-skill.js';
import { admissionDeps, candidate, scope } from '../../../test/admission-fixture.js';
import { skillDigest } from '../content-digest.js';
import { call, io } from '../../../test/skill-tests.js';
import { keyOf } from '../life/skill-life.js';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { registerSkill } from '../life/register-skill.js';
import { dependencyOn } from './bundle-code.js';
import { proven, type SkillGiven, skillOf } from '../../../test/bundle-fixture.js';
import { rollbackSkill } from '../life/decisions.js';

const signal = new AbortController().signal;

const admit = (skill: Skill, procedural: ProceduralMemory) => admitSkill(keyOf(skill), admissionDeps(procedural), signal);

describe('admitSkill', () => {
  it('ends in the same state after a crash at any move', async () => {
    const better = candidate({ version: 2, code: 'n = int(input())\nprint(n + n)' });
    for (const death of [1, 2]) {
      const procedural = new FakeProceduralMemory().keep(candidate({ status: 'active' }), better);
      const move = procedural.move.bind(procedural);
      let movesLeft = death;
      procedural.move = async (moves) => {
        const moved = await move(moves);
        movesLeft -= 1;
        return movesLeft === 0 ? Promise.reject(new Error('killed')) : moved;
      };
      await expect(admit(better, procedural)).rejects.toThrow('killed');
      await admit(better, procedural);
      expect(procedural.statuses().map((one) => one.split(' ')[1])).toEqual(['deprecated', 'active']);
    }
  });

  it('throws a retryable error where another decision was faster', async () => {
    const procedural = new FakeProceduralMemory().keep(candidate());
    const move = procedural.move.bind(procedural);
    procedural.move = () => Promise.reject(new EtudeError('ABORTED', 'version 9 became active meanwhile'));
    const error: unknown = await admit(candidate(), procedural).catch((thrown: unknown) => thrown);
    expect(isRetryable(error)).toBe(true);
    procedural.move = move;
    expect(await admit(candidate(), procedural)).toMatchObject({ status: 'active' });
  });

  it('refuses another digest or version than the request names', async () => {
    const procedural = new FakeProceduralMemory().keep(candidate());
    await expect(admit(candidate({ digest: 'f'.repeat(64) }), procedural)).rejects.toMatchObject({ code: 'ABORTED' });
    await expect(admit(candidate({ version: 7 }), procedural)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

const ofUser = (user: string, status: SkillStatus) => candidate({ scope: { ...scope, user }, status });

describe('settledStatus', () => {
  it('is null until verification and approval are over', async () => {
    for (const status of SKILL_STATUSES) {
      const procedural = new FakeProceduralMemory().keep(candidate({ status }), candidate({ version: 2, digest: 'e'.repeat(64) }));
      expect(await settledStatus(procedural, candidate())).toBe(status === 'candidate' || status === 'verified' ? null : status);
    }
  });

  it("ignores another user's skill", async () => {
    const procedural = new FakeProceduralMemory().keep(ofUser('ann', 'active'), { ...ofUser('bob', 'candidate'), version: 2 });
    expect(await settledStatus(procedural, ofUser('ann', 'candidate'))).toBe('active');
    expect(await settledStatus(procedural, ofUser('bob', 'candidate'))).toBeNull();
  });
});

describe('verification again', () => {
  it('runs for a new round or an unknown key, and keeps a passing skill active', async () => {
    const procedural = new FakeProceduralMemory().keep(candidate());
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
    const procedural = new FakeProceduralMemory().keep(skill);
    expect(await admitSkill(keyOf(skill), admissionDeps(procedural), signal)).toMatchObject({
      status: 'rejected',
      statusReason: expect.stringContaining('gone@1'),
    });
  });
});

/** The ids of the executions that a check makes. */
async function ids(check: typeof checkSkill): Promise<readonly string[]> {
  const sandboxes = new PythonSandboxes();
  await check(candidate(), { ...admissionDeps(new FakeProceduralMemory()), sandboxes }, signal);
  return sandboxes.requests.map(({ executionId }) => executionId);
}

/** The result of verifying the same draft after its registration. */
async function registeredReason(given: Skill, procedural: FakeProceduralMemory) {
  const registration = { procedural, settings: ProceduralMemorySettings.parse({ enabled: true }) };
  const stored = await registerSkill(given, { by: 'ann' }, registration);
  return (await admitSkill(keyOf(stored), admissionDeps(procedural), signal)).statusReason;
}

it('returns the findings of verification and stores nothing', async () => {
  const procedural = new FakeProceduralMemory();
  const deps = admissionDeps(procedural);
  expect(await checkSkill(candidate(), deps, signal)).toMatchObject({
    passed: true,
    digest: candidate().digest,
    confidence: 0.375,
    found: { testsPassed: 1 },
  });
  expect(await checkSkill(candidate({ code: 'print(5)' }), deps, signal)).toMatchObject({ passed: false, confidence: 0 });
  expect(await procedural.versions(scope, candidate().name)).toEqual([]);
});

describe('checkSkill of an existing name', () => {
  const ONE = candidate({ status: 'active', digest: 'a'.repeat(64) });
  const OTHER = io('3', '7');
  const draft = candidate({ code: 'print(int(input()) * 2 + 1)', tests: [OTHER] });

  it('runs the tests of the version that a draft would replace', async () => {
    const procedural = new FakeProceduralMemory().keep(ONE);
    const check = await checkSkill(draft, admissionDeps(procedural), signal);
    expect(check).toMatchObject({ passed: false, confidence: 0 });
    expect(check.reason).toContain('the tests of version 1, which it would replace, fail');
    expect(await registeredReason(draft, procedural)).toBe(check.reason);
    const kept = await checkSkill(candidate({ code: 'print(2 * int(input()))' }), admissionDeps(procedural), signal);
    expect(kept).toMatchObject({ passed: true, reason: '' });
    expect(kept.evidence).toContain('the tests of version 1 pass');
  });

  it('runs held-out tests of the newest version without showing them', async () => {
    const secret = io('40', '80');
    const rejected = { ...ONE, version: 2, status: 'rejected' as const, digest: 'b'.repeat(64), heldOut: [secret] };
    const special = candidate({ code: 'print({2: 4}.get(int(input()), 5))' });
    const procedural = new FakeProceduralMemory().keep(ONE, rejected);
    const check = await checkSkill(special, admissionDeps(procedural), signal);
    expect(check.reason).toMatch(/^its held-out tests fail: /);
    expect(JSON.stringify([check.reason, check.evidence])).not.toMatch(/40|80/);
    expect(await registeredReason(special, procedural)).toBe(check.reason);
  });

  it('shares no execution with the later verification', async () => {
    const verification = new Set(await ids(examineSkill));
    expect((await ids(checkSkill)).filter((id) => verification.has(id))).toEqual([]);
  });
});

const active = (name: string, code: string, given: SkillGiven) => proven(skillOf(name, code, given));

const step = active('step', 'def step(n):\n    return n + 1', { tests: [call([1], 2), call([5], 6)] });
const twice = active('twice', 'from skills import step\ndef twice(n):\n    return step(step(n))', { tests: [call([1], 3)], needs: [step] });
const four = active('four', 'from skills import step, twice\ndef four(n):\n    return twice(step(step(n)))', {
  tests: [call([1], 5)],
  needs: [step, twice],
});
/** A second version of `step`, with other code and the same results. */
const newStep = skillOf('step', 'def step(n):\n    return 1 + n', { tests: [call([1], 2), call([7], 8)], version: 2, status: 'candidate' });

function registry(...skills: Skill[]) {
  const procedural = new FakeProceduralMemory().keep(...skills);
  const requested: Skill[] = [];
  const deps = admissionDeps(procedural, {}, requested);
  /** Verifies all requested skills in order until no request is left. Returns the requests. */
  const drain = async (over: Partial<AdmissionDeps> = {}): Promise<string[]> => {
    const done: string[] = [];
    for (let next = requested.shift(); next !== undefined && done.length < 20; next = requested.shift()) {
      const { name, version, status } = await admitSkill(keyOf(next), { ...deps, ...over }, signal);
      done.push(`${name}@${version} ${status}`);
    }
    return done;
  };
  const versions = async (name: string) => (await procedural.versions(step.scope, name)).toReversed();
  const lives = async (name: string) => (await versions(name)).map(({ version, status }) => `${version} ${status}`);
  return { procedural, requested, deps, drain, versions, lives };
}

describe('a new version of a skill that others call', () => {
  it('is verified with its callers at any depth, which then get new pins', async () => {
    const { deps, drain, lives, versions } = registry(step, { ...twice, executionCount: 5, successRate: 0.8 }, four, newStep);
    expect(await admitSkill(keyOf(newStep), deps, signal)).toMatchObject({ status: 'active', proof: { kept: [{ name: 'step' }, {}, {}] } });
    const done = await drain();
    expect(done).toContain('twice@2 active');
    expect(await lives('twice')).toEqual(['1 deprecated', '2 active']);
    const [twice2] = (await versions('twice')).slice(-1);
    expect(twice2).toMatchObject({ executionCount: 0, successRate: 1 });
    const [last] = (await versions('four')).slice(-1);
    expect(last).toMatchObject({ status: 'active', history: expect.arrayContaining([expect.objectContaining({ by: 'verification' })]) });
    expect(last?.dependencies).toEqual([dependencyOn(newStep), ...(twice2 ? [dependencyOn(twice2)] : [])]);
    expect(await drain()).toEqual([]);
  });

  it('requests no verification twice, and none once all is pinned', async () => {
    const { deps, drain, requested, procedural } = registry(step, twice, newStep);
    await admitSkill(keyOf(newStep), deps, signal);
    await admitSkill(keyOf(newStep), deps, signal);
    expect(new Set(requested.map(({ name, version }) => `${name}@${version}`))).toEqual(new Set(['twice@2']));
    await drain();
    const present = await procedural.get(step.scope, 'step');
    expect(await reverifyDependents(present!, deps)).toEqual([]);
    await admitSkill(keyOf(newStep), deps, signal);
    expect(requested).toEqual([]);
  });
});

const review = (procedural: FakeProceduralMemory) => ({ settings: admissionDeps(procedural, { approvalMode: 'review' }).settings });

it('activates the caller versions that were verified with a rolled-back skill', async () => {
  const { deps, drain, lives, procedural } = registry(step, twice, newStep);
  await admitSkill(keyOf(newStep), deps, signal);
  await drain();
  const present = await procedural.get(step.scope, 'step');
  const decision = { by: 'ann', reason: 'it was better', at: 20 };
  const back = present && (await rollbackSkill(procedural, present, decision));
  await reverifyDependents(back ?? step, { ...deps, clock: { now: () => 21 } });
  expect([await lives('step'), await lives('twice'), await drain()]).toEqual([
    ['1 active', '2 deprecated'],
    ['1 active', '2 deprecated'],
    [],
  ]);
});

describe('approval', () => {
  it('carries over where only pins changed', async () => {
    const history = [{ at: 1, by: 'ann', from: 'pending_review' as const, to: 'active' as const, reason: '' }];
    const { deps, drain, versions, procedural } = registry(step, { ...twice, history }, newStep);
    await admitSkill(keyOf(newStep), deps, signal);
    expect(await drain(review(procedural))).toEqual(['twice@2 active']);
    const [, second] = await versions('twice');
    expect(second?.statusReason).toBe('approval of version 1 carries over: only the versions of its callees differ');
  });

  it('does not carry over to changed code', async () => {
    const edited = skillOf('twice', `${twice.code}  # the same`, { tests: twice.tests, needs: [step], version: 2, status: 'candidate' });
    const { deps, procedural } = registry(step, twice, edited);
    expect(await admitSkill(keyOf(edited), { ...deps, ...review(procedural) }, signal)).toMatchObject({ status: 'pending_review' });
  });

  it('does not carry over to a version with a new finding', async () => {
    const { deps, drain, procedural } = registry(step, twice, newStep);
    await admitSkill(keyOf(newStep), deps, signal);
    const finding = { analyser: 'ruff', rule: 'S102', severity: 'error' as const, line: 1, message: 'exec' };
    const found = { analyser: { analyse: async () => [finding] } };
    expect(await drain({ ...review(procedural), ...found })).toEqual(['twice@2 pending_review']);
  });
});

const OWN: Scope = { tenant: 'acme', agent: 'solver', user: null };
const ANNS: Scope = { ...OWN, user: 'ann' };
const TENANT: Scope = { ...OWN, agent: '@tenant' };
const GLOBAL: Scope = { ...TENANT, tenant: '@global' };

/** Verifies a new version that is wrong for numbers below zero, and then its caller. Only the caller's tests have such numbers. */
async function admitted(owner: Scope, caller: Scope) {
  const known = proven(skillOf('step', 'def step(n):\n    return n + 1', { scope: owner, tests: [call([1], 2), call([5], 6)] }));
  const code = 'def step(n):\n    return 1 + abs(n)';
  const next = skillOf('step', code, { scope: owner, version: 2, status: 'candidate', tests: [call([1], 2), call([7], 8)] });
  const secret = skillOf('secret_project', 'from skills import step\ndef secret_project(n):\n    return step(n)', {
    scope: caller,
    tests: [call([-3], -2)],
    needs: [known],
  });
  const procedural = new FakeProceduralMemory().keep(known, proven(secret), next);
  const requested: Skill[] = [];
  const deps = admissionDeps(procedural, {}, requested);
  const skill = await admitSkill(keyOf(next), deps, signal);
  for (const one of requested) await admitSkill(keyOf(one), deps, signal);
  return { skill, callers: (await procedural.versions(caller, 'secret_project')).toReversed() };
}

describe('the verification of a skill', () => {
  it.each([
    ['another tenant', GLOBAL, OWN],
    ['one agent', TENANT, OWN],
    ['one user', OWN, ANNS],
  ])('ignores callers of %s that some readers do not see', async (_whose, owner, caller) => {
    const { skill, callers } = await admitted(owner, caller);
    expect(skill).toMatchObject({ status: 'active', proof: { kept: [{ name: 'step', version: 1 }] } });
    expect(JSON.stringify(skill)).not.toContain('secret_project');
    expect(callers.map(({ status }) => status)).toEqual(['active', 'rejected']);
    expect(callers[0]?.dependencies).toMatchObject([{ name: 'step', version: 1 }]);
  });

  it.each([
    ['everybody', GLOBAL, GLOBAL],
    ['the tenant', TENANT, TENANT],
    ['the same user', ANNS, OWN],
  ])('fails on the tests of a caller that %s reads too', async (_whose, owner, caller) => {
    const { skill } = await admitted(owner, caller);
    expect(skill).toMatchObject({ status: 'rejected', statusReason: expect.stringContaining('secret_project@1') as string });
  });
});
