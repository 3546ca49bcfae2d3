import { describe, expect, it } from 'vitest';
import { provenSkillOf } from '../../test/bundle-fixture.js';
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
  it.each([IMPORTS, 'import skills\n\ndef quadruple(n):\n    return skills.double_number(skills.double_number(n))'])(
    'runs with the version that its prompt showed, and counts the use: %s',
    async (code) => {
      const one = world(code);
      expect(await one.run()).toMatchObject({ result: { verdict: 'AC', skill: null, code } });
      expect((one.model as AnsweringModel).asked.at(-1)).toContain('from skills import NAME');
      expect(one.outbox.of('skill_use')).toMatchObject([{ name: 'double_number', version: 1, success: true }]);
      expect(one.outbox.of('episode')).toMatchObject([{ episode: { skillsUsed: ['double_number@1'] } }]);
    },
  );

  it('counts a use without success where the attempt failed', async () => {
    const one = world(IMPORTS.replace('(double_number(n))', '(n)'));
    expect(await one.run()).toMatchObject({ result: { verdict: 'WA' } });
    expect(one.outbox.of('skill_use')).toMatchObject([{ name: 'double_number', success: false }]);
  });

  it.each([
    ['it was not shown', { skills: [OTHER] }],
    ['its proof is for other code', { skills: [{ ...DOUBLE, code: 'def double_number(n):\n    return 12' }] }],
    ['memory is off', { spec: { ...SPEC, memory: { off: true } } }],
  ])('fails where %s', async (_, given) => {
    const one = world(IMPORTS, given);
    expect(await one.run()).toMatchObject({ result: { verdict: 'RE' } });
    expect(one.outbox.of('skill_use')).toEqual([]);
  });
});
