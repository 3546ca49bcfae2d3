import type { SkillTest } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { planUnit } from '../consolidation/plan.js';
import { provenSkillOf } from '../../test/bundle-fixture.js';
import { FakeProceduralMemory } from '../../test/fake-procedural-memory.js';
import { episodeOf } from '../../test/memory-records.js';
import { PythonSandboxes } from '../../test/python-sandboxes.js';
import { AnsweringModel, fenced, type SpecGiven, World } from '../../test/rollout-fixture.js';

const OWNER = { tenant: 'acme', agent: 'default', user: null };
const DOUBLE = provenSkillOf('double_number', 'def double_number(n):\n    return 2 * n', { n: { type: 'integer' } }, { scope: OWNER });
const OTHER = provenSkillOf('triple_number', 'def triple_number(n):\n    return 3 * n', { n: { type: 'integer' } }, { scope: OWNER });
const SPEC: SpecGiven = {
  evaluator: { kind: 'function_cases', entryPoint: 'quadruple', cases: [{ args: [3], expected: 12 }] },
  limits: { attemptsMax: 1 },
};
const IMPORTS = 'from skills import (\n    double_number,\n)\n\ndef quadruple(n):\n    return double_number(double_number(n))';

function world(code: string, { skills = [DOUBLE, OTHER], spec = SPEC }: { skills?: (typeof DOUBLE)[]; spec?: SpecGiven } = {}) {
  return new World({
    spec,
    skills: skills.map((skill) => ({ skill, similarity: 0.5 })),
    model: new AnsweringModel(() => fenced(code)),
    deps: { sandboxes: new PythonSandboxes() },
  });
}

describe('an answer that imports a skill', () => {
  it.each([
    IMPORTS,
    'import skills\n\ndef quadruple(n):\n    return skills.double_number(skills.double_number(n))',
    'import math, skills as known\n\ndef quadruple(n):\n    return known.double_number(known.double_number(n))',
    'from skills import double_number as twice  # shown\n\ndef quadruple(n):\n    return twice(twice(n))',
  ])('runs with the version that its prompt showed, and counts the use: %s', async (code) => {
    const one = world(code);
    expect(await one.run()).toMatchObject({ result: { verdict: 'AC', skill: null, code } });
    expect((one.model as AnsweringModel).asked.at(-1)).toContain('from skills import NAME');
    expect(one.outbox.of('skill_use')).toMatchObject([{ name: 'double_number', version: 1, success: true }]);
    expect(one.outbox.of('episode')).toMatchObject([{ episode: { skillsUsed: ['double_number@1'] } }]);
    expect(one.outbox.of('transition')).toMatchObject([{ transition: { skill: null, imported: ['double_number@1'] } }]);
  });

  it('gives a skill that is pinned to the imported one', async () => {
    const one = world(IMPORTS, { spec: { ...SPEC, mode: 'training' } });
    await one.run();
    const { version, digest } = DOUBLE;
    expect(one.outbox.of('skill')).toMatchObject([
      { skill: { name: 'quadruple', dependencies: [{ name: 'double_number', version, digest }] } },
    ]);
  });

  it('gives a pinned skill by consolidation too', async () => {
    const tests: SkillTest[] = [{ kind: 'call', args: [3], kwargs: {}, expected: 12, tolerance: 0 }];
    const solved = { scope: OWNER, code: IMPORTS, entryPoint: 'quadruple', tests, fingerprint: 'quadruple' };
    const group = ['e1', 'e2'].map((id) => episodeOf({ ...solved, id }));
    const semantic = { appliedAmong: async () => new Set<string>(), applyFacts: async () => ({ added: 0, reinforced: 0 }) };
    const model = new AnsweringModel(() => '{"facts": [], "skill": {"description": "Four times a number."}}');
    const deps = {
      semantic,
      episodic: { transitions: async () => [] },
      model,
      procedural: new FakeProceduralMemory().keep(DOUBLE),
      settings: new World().deps.settings,
    };
    const page = { episodes: group, unread: group, group, confirms: false };
    const { skill } = await planUnit(page, { tenant: 'acme', now: 1, earlier: [], skills: [] }, deps, new AbortController().signal);
    expect(skill?.dependencies).toMatchObject([{ name: 'double_number', version: 1 }]);
  });

  it('loads every shown skill for an import of all', async () => {
    const one = world('from skills import *\ndef quadruple(n):\n    return triple_number(n) + double_number(n) - n');
    expect(await one.run()).toMatchObject({ result: { verdict: 'AC' } });
    expect(one.outbox.of('skill_use')).toHaveLength(2);
  });

  it('counts a use without success where the attempt failed', async () => {
    const one = world(IMPORTS.replace('(double_number(n))', '(n)'));
    expect(await one.run()).toMatchObject({ result: { verdict: 'WA' } });
    expect(one.outbox.of('skill_use')).toMatchObject([{ name: 'double_number', success: false }]);
  });

  it.each([
    ['it was not shown', { skills: [OTHER] }],
    ['its proof is for other code', { skills: [{ ...DOUBLE, code: 'def double_number(n):\n    return 12' }] }],
    ["it is another user's", { skills: [{ ...DOUBLE, scope: { ...OWNER, user: 'ann' } }] }],
    ['it is not active', { skills: [{ ...DOUBLE, status: 'rejected' as const }] }],
    ['memory is off', { spec: { ...SPEC, memory: { off: true } } }],
  ])('fails where %s', async (_, given) => {
    const one = world(IMPORTS, given);
    expect(await one.run()).toMatchObject({ result: { verdict: 'RE' } });
    expect(one.outbox.of('skill_use')).toEqual([]);
  });
});
