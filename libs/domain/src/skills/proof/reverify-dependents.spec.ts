import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { admissionDeps } from '../../../test/admission-fixture.js';
import { type AdmissionDeps, admitSkill, reverifyDependents } from './admit-skill.js';
import { dependencyOn } from './bundle-code.js';
import { keyOf } from '../life/skill-life.js';
import { skillOf, type SkillGiven, proven } from '../../../test/bundle-fixture.js';
import { rollbackSkill } from '../life/decisions.js';

const signal = new AbortController().signal;
const test = (arg: number, expected: number) => ({ kind: 'call' as const, args: [arg], kwargs: {}, expected, tolerance: 0 });
const active = (name: string, code: string, given: SkillGiven) => proven(skillOf(name, code, given));

const step = active('step', 'def step(n):\n    return n + 1', { tests: [test(1, 2), test(5, 6)] });
const twice = active('twice', 'from skills import step\ndef twice(n):\n    return step(step(n))', { tests: [test(1, 3)], needs: [step] });
const four = active('four', 'from skills import step, twice\ndef four(n):\n    return twice(step(step(n)))', {
  tests: [test(1, 5)],
  needs: [step, twice],
});
/** Another implementation with the same results. */
const newStep = skillOf('step', 'def step(n):\n    return 1 + n', { tests: [test(1, 2), test(7, 8)], version: 2, status: 'candidate' });

function registry(...skills: Skill[]) {
  const procedural = new FakeProceduralMemory().keep(...skills);
  const requested: Skill[] = [];
  const deps = admissionDeps(procedural, {}, requested);
  /** Verifies all requested skills in order until no request is left; returns the requests. */
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
    expect(second?.statusReason).toBe('approval of version 1 carries over: only what it calls is another version');
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
