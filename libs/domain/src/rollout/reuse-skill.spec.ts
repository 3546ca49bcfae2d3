import type { Json } from '@etude/contracts/json';
import { describe, expect, it } from 'vitest';
import { fingerprintOf } from './rollout-context.js';
import { dependencyOn } from '../skills/proof/bundle-code.js';
import { contractOf, programOf, proven, provenSkillOf } from '../../test/bundle-fixture.js';
import { AnsweringModel, fenced, type SpecGiven, specOf, ran, World, type WorldGiven } from '../../test/rollout-fixture.js';
import type { SkillTest } from '@etude/contracts/memory';
import { episode, world as consolidation } from '../../test/consolidation-fixture.js';
import { PythonSandboxes } from '../../test/python-sandboxes.js';

const near = (given: Parameters<typeof programOf>[0] = {}, similarity = 0.85) => [{ skill: programOf(given), similarity }];
const NUMPY = { packages: ['numpy==2.3.1'] };
const askedIn = (world: World) => (world.model as AnsweringModel).asked;
const solver = () => new AnsweringModel(() => fenced('right'));
const pythonTests = (prompt: string): SpecGiven => ({
  prompt,
  evaluator: { kind: 'python_tests', entryPoint: 'twice', tests: 'assert twice(1) == 2' },
});
const FUNCTION_CASES: SpecGiven = { evaluator: { kind: 'function_cases', entryPoint: 'twice', cases: [{ args: [2], expected: 2 }] } };

const called = (args: Json[], expected: Json) => ({ kind: 'call' as const, args, kwargs: {}, expected, tolerance: 0 });

describe('reuse of skills', () => {
  it('answers a task solved before with no model call', async () => {
    const { world, end } = await ran({ skills: near({ fingerprints: [fingerprintOf(specOf())] }, 0) });
    expect(end).toMatchObject({
      state: 'succeeded',
      stopReason: 'solved',
      result: { skill: 'double_it@1', model: null, scripted: false },
      usage: { attempts: 0, modelCalls: 0, steps: 4 },
    });
    expect(world.steps).toEqual(['a0.skill', 'a0.execute', 'a0.evaluate', 'a0.record']);
    expect(world.outbox.of('skill_use')).toMatchObject([
      { name: 'double_it', version: 1, success: true, fingerprint: fingerprintOf(specOf()) },
    ]);
    expect(world.outbox.of('transition')).toMatchObject([{ transition: { attempt: 0, skill: 'double_it@1', verdict: 'AC' } }]);
    expect(world.outbox.of('episode')).toMatchObject([{ episode: { skillsUsed: ['double_it@1'] } }]);
  });

  it('gives a function the name that the task asks for', async () => {
    const world = new World({ spec: FUNCTION_CASES, skills: near({ code: 'def double(right):\n    return right', entryPoint: 'double' }) });
    expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: expect.stringMatching(/\ntwice = double$/) } });
  });

  const NUMBER = { type: 'number' };
  it.each([
    ['takes the calls', { n: NUMBER }, FUNCTION_CASES, true],
    ['needs another number of arguments', { a: NUMBER, b: NUMBER }, FUNCTION_CASES, false],
    ['needs arguments of another type', { text: { type: 'string' } }, FUNCTION_CASES, false],
    ['takes the parameters that the prompt names', { n: NUMBER }, pythonTests('Implement `twice(number)`.'), true],
    ['takes as many parameters as the prompt names', { n: NUMBER }, pythonTests('Implement `twice(number, times=2)`.'), false],
    ['has a signature in the prompt', { n: NUMBER }, pythonTests('Double it: twice([1, 2]) is [2, 4].'), false],
  ])('tries a function of another name only if it %s', async (_what, parameters, spec, isTried) => {
    const double = { code: 'def double(n):\n    return "right"', entryPoint: 'double', contract: contractOf('double', parameters) };
    const { world } = await ran({ spec, skills: near(double), model: solver() });
    expect(world.steps.includes('a0.execute')).toBe(isTried);
  });

  it.each([
    ['numbers', [called([1], 2)], true],
    ['lists of numbers', [called([[1]], [2])], false],
    ['texts as values', [called([1], 'two')], false],
    ['texts, and numbers in another', [called(['one'], 2), called([1], 2)], true],
  ])('tries a function without a schema whose tests have %s only if a case looks alike', async (_what, tests, isTried) => {
    const double = { code: 'def double(n):\n    return "right"', entryPoint: 'double', contract: contractOf('double', { n: {} }), tests };
    const evaluator = { kind: 'function_cases' as const, entryPoint: 'twice', cases: [{ args: [2], expected: 4, public: true }] };
    const { world } = await ran({ spec: { evaluator }, skills: near(double), model: solver() });
    expect(world.steps.includes('a0.execute')).toBe(isTried);
  });

  it('records a failing skill and continues with attempts', async () => {
    const { world, end } = await ran({ skills: near({ code: 'print("no")' }) });
    expect(end).toMatchObject({ stopReason: 'solved', result: { skill: null }, usage: { attempts: 2, executions: 3 } });
    expect(world.outbox.of('skill_use')).toMatchObject([
      { success: false, fellBack: true, failure: { input: specOf().prompt, error: expect.stringContaining('case 1 of 2') as string } },
    ]);
    expect(askedIn(world)[0]).not.toMatch(/critique|feedback/i);
  });

  it('asks once for the parameters and prints the result', async () => {
    const model = new AnsweringModel(() => '{"n": 21, "right": "it\'s \\"so\\""}');
    const { world, end } = await ran({
      spec: { evaluator: { kind: 'none' } },
      skills: near({ code: 'def double(n, right): ...', entryPoint: 'double' }),
      model,
    });
    expect(end).toMatchObject({ stopReason: 'solved', usage: { modelCalls: 1 } });
    expect(world.steps).toContain('a0.bind');
    expect(end.result?.code).toMatch(/print\(double\(\*\*_json\.loads\("\{\\"n\\":21,\\"right\\":\\"it's \\\\\\"so\\\\\\"\\"\}"\)\)\)$/);
  });

  it.each(['I do not know.', '{}', '{"n": ', '[1]', '{"m": 2}'])(
    'records a failure if the model gives no fitting arguments: %s',
    async (answer) => {
      const skill = provenSkillOf('double', 'def double(n): ...', { n: { type: 'integer' } }, { scope: programOf({}).scope });
      const model = new AnsweringModel((text) => (text.includes('JSON object') ? answer : fenced('right')));
      const world = new World({ spec: { evaluator: { kind: 'none' } }, skills: [{ skill, similarity: 0.9 }], model });
      expect(await world.run()).toMatchObject({ stopReason: 'solved', result: { skill: null }, usage: { attempts: 1, modelCalls: 2 } });
      expect(world.outbox.of('skill_use')).toMatchObject([{ success: false, fellBack: true }]);
    },
  );

  it('makes no new skill from a task that a skill solved', async () => {
    const { world } = await ran({ spec: { mode: 'training' }, skills: near({}) });
    expect(world.learned).toEqual([]);
    expect(world.outbox.of('skill')).toEqual([]);
  });

  it('records digests of input and output, and the owner of the skill', async () => {
    const shared = { tenant: 'acme', agent: '@tenant', user: null };
    const { world } = await ran({ skills: near({ scope: shared }) });
    expect(world.outbox.of('skill_use')).toMatchObject([
      {
        success: true,
        scope: { agent: 'default' },
        owner: { tenant: 'acme', agent: '@tenant' },
        inputDigest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        outputDigest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      },
    ]);
    expect(world.outbox.of('skill_use')[0]).not.toHaveProperty('fellBack');
  });

  it('prefers the skill with the narrowest owner', async () => {
    const fingerprints = [fingerprintOf(specOf())];
    const own = { tenant: 'acme', agent: 'default', user: null };
    const skills = ['@global', 'acme'].map((tenant) =>
      programOf({ name: `of_${tenant.slice(-4)}`, fingerprints, scope: { ...own, tenant, agent: '@tenant' } }),
    );
    const all = [...skills, programOf({ name: 'own', fingerprints, scope: own })].map((skill) => ({ skill, similarity: 0 }));
    expect((await new World({ skills: all }).run()).result?.skill).toBe('own@1');
    expect((await new World({ skills: all.slice(0, 2) }).run()).result?.skill).toBe('of_acme@1');
  });
});

it.each([
  ['automatic registration is off', { autoRegisterSkills: false }, 0],
  ['there is no room for another', { maxSkills: 1 }, 0],
  ['there is room', { maxSkills: 2 }, 1],
])('decides whether a learned skill is kept: %s', async (_, settings, count) => {
  const { world } = await ran({ spec: { mode: 'training' }, skills: near({}, 0), settings });
  expect(world.outbox.of('skill')).toHaveLength(count);
  expect(askedIn(world).some((text) => text.includes('describe the code'))).toBe(count > 0);
});

const HALF = proven(programOf({ name: 'half', code: 'def half(x): ...', entryPoint: 'half' }));
const CALLER = programOf({ name: 'caller', code: 'from skills import half\nprint("right")', dependencies: [dependencyOn(HALF)] });

it.each<[string, WorldGiven, string]>([
  ['one that calls another', { skills: [CALLER, HALF].map((skill, at) => ({ skill, similarity: at === 0 ? 0.9 : 0 })) }, 'caller@1'],
  ['one whose packages a sandbox has', { skills: near(NUMPY), deps: { templateFor: () => 'science' } }, 'double_it@1'],
  ["one above the agent's threshold", { skills: near({}, 0.6), settings: { skillSearchThreshold: 0.5 } }, 'double_it@1'],
])('answers with a skill: %s', async (_, given, skill) => {
  const { world, end } = await ran(given);
  expect(end.result?.skill).toBe(skill);
  const [request] = world.sandboxes.requests;
  expect(request?.template).toBe(given.deps?.templateFor && 'science');
  expect(JSON.stringify(request?.runs[0]).includes('def half(x): ...')).toBe(skill === 'caller@1');
});

describe('a task is solved without a skill', () => {
  it.each<[string, WorldGiven, boolean]>([
    ['it is a function, and a program is wanted', { skills: near({ entryPoint: 'double', code: 'def double(right): ...' }) }, true],
    ['it is a program, and a function is wanted', { skills: near({ entryPoint: null }), spec: FUNCTION_CASES }, true],
    ['it is a snippet', { skills: near({ kind: 'snippet' }) }, true],
    [
      'its proof is for other code',
      { skills: [{ skill: { ...proven(programOf()), code: 'print("right") # changed' }, similarity: 1 }] },
      false,
    ],
    ['a skill that it calls is missing', { skills: [{ skill: CALLER, similarity: 0.9 }] }, true],
    ['no sandbox has its packages', { skills: near(NUMPY) }, true],
    ["it is below the agent's threshold", { skills: near(), settings: { skillSearchThreshold: 0.9 } }, true],
    ['the agent prefers none', { skills: near(), settings: { preferSkills: false } }, true],
    ['skills are off for the agent', { skills: near(), settings: { enabled: false }, spec: { mode: 'training' } }, false],
    ['the task prefers none', { skills: near(), spec: { memory: { preferSkills: false } } }, true],
    ['memory is off', { skills: near(), spec: { memory: { off: true } } }, false],
    ['the layer is left out', { skills: near(), spec: { memory: { layers: ['semantic'] } } }, false],
  ])('where %s', async (_, given, isShown) => {
    const { world, end } = await ran({ model: solver(), ...given });
    expect(end.result?.skill).toBeNull();
    expect(askedIn(world).join().includes('kind="skill"')).toBe(isShown);
    expect([world.outbox.of('skill_use'), world.outbox.of('skill')]).toEqual([[], []]);
  });
});

it.each<[string, WorldGiven, string[]]>([
  ['a skill that was tried', { skills: near({}) }, ['double_it@1']],
  ['a skill that was shown', { skills: near({}, 0.7), model: solver() }, ['double_it@1']],
  ['nothing where memory is read-only', { skills: near({}), spec: { memory: { readOnly: true } } }, []],
])('counts as offered: %s', async (_, given, offered) => {
  const { world } = await ran(given);
  expect(world.offered).toEqual(offered);
});

const OWNER = { tenant: 'acme', agent: 'default', user: null };
const DOUBLE = provenSkillOf('double_number', 'def double_number(n):\n    return 2 * n', { n: { type: 'integer' } }, { scope: OWNER });
const OTHER = provenSkillOf('triple_number', 'def triple_number(n):\n    return 3 * n', { n: { type: 'integer' } }, { scope: OWNER });
const SPEC: SpecGiven = {
  evaluator: { kind: 'function_cases', entryPoint: 'quadruple', cases: [{ args: [3], expected: 12 }] },
  limits: { attemptsMax: 1 },
};
const IMPORTS = 'from skills import (\n    double_number,\n)\n\ndef quadruple(n):\n    return double_number(double_number(n))';

function importing(code: string, { skills = [DOUBLE, OTHER], spec = SPEC }: { skills?: (typeof DOUBLE)[]; spec?: SpecGiven } = {}) {
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
    const one = importing(code);
    expect(await one.run()).toMatchObject({ result: { verdict: 'AC', skill: null, code } });
    expect((one.model as AnsweringModel).asked.at(-1)).toContain('from skills import NAME');
    expect(one.outbox.of('skill_use')).toMatchObject([{ name: 'double_number', version: 1, success: true }]);
    expect(one.outbox.of('episode')).toMatchObject([{ episode: { skillsUsed: ['double_number@1'] } }]);
    expect(one.outbox.of('transition')).toMatchObject([{ transition: { skill: null, imported: ['double_number@1'] } }]);
  });

  it('gives a skill that is pinned to the imported one', async () => {
    const one = importing(IMPORTS, { spec: { ...SPEC, mode: 'training' } });
    await one.run();
    const { version, digest } = DOUBLE;
    expect(one.outbox.of('skill')).toMatchObject([
      { skill: { name: 'quadruple', dependencies: [{ name: 'double_number', version, digest }] } },
    ]);
  });

  it('gives a pinned skill by consolidation too', async () => {
    const tests: SkillTest[] = [{ kind: 'call', args: [3], kwargs: {}, expected: 12, tolerance: 0 }];
    const solved = { scope: OWNER, code: IMPORTS, entryPoint: 'quadruple', tests, fingerprint: 'quadruple' };
    const { run, skills } = consolidation(
      [episode('e1', solved), episode('e2', solved)],
      () => '{"facts": [], "skill": {"description": "4n."}}',
    );
    skills.set('double_number', DOUBLE);
    await run();
    expect([...skills.values()].at(-1)).toMatchObject({ name: 'quadruple', dependencies: [{ name: 'double_number', version: 1 }] });
  });

  it('loads every shown skill for an import of all', async () => {
    const one = importing('from skills import *\ndef quadruple(n):\n    return triple_number(n) + double_number(n) - n');
    expect(await one.run()).toMatchObject({ result: { verdict: 'AC' } });
    expect(one.outbox.of('skill_use')).toHaveLength(2);
  });

  it.each([
    ['it was not shown', { skills: [OTHER] }],
    ['its proof is for other code', { skills: [{ ...DOUBLE, code: 'def double_number(n):\n    return 12' }] }],
    ["it is another user's", { skills: [{ ...DOUBLE, scope: { ...OWNER, user: 'ann' } }] }],
    ['it is not active', { skills: [{ ...DOUBLE, status: 'rejected' as const }] }],
    ['memory is off', { spec: { ...SPEC, memory: { off: true } } }],
  ])('fails where %s', async (_, given) => {
    const one = importing(IMPORTS, given);
    expect(await one.run()).toMatchObject({ result: { verdict: 'RE' } });
    expect(one.outbox.of('skill_use')).toEqual([]);
  });
});

/** A task over lists of numbers, which the skill's parameters don't accept. */
const NUMBERS: SpecGiven = {
  evaluator: { kind: 'function_cases', entryPoint: 'double_all', cases: [{ args: [[3, 4]], expected: [6, 8] }] },
};
const WRAPPER = 'from skills import double_number\n\ndef double_all(ns):\n    return [double_number(n) for n in ns]';
const PROGRAM = 'def double_all(ns):\n    return [2 * n for n in ns]';

function worldWith(wrapper: string, spec: SpecGiven = NUMBERS) {
  const model = new AnsweringModel((text) => (text.includes('# Function to use') ? wrapper : fenced(PROGRAM)));
  const world = new World({ spec, skills: [{ skill: DOUBLE, similarity: 0.9 }], model, deps: { sandboxes: new PythonSandboxes() } });
  return { world, model };
}

it('wraps a near function that does not fit by one short call', async () => {
  const { world, model } = worldWith(fenced(WRAPPER));
  expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: WRAPPER, skill: null }, usage: { modelCalls: 1, attempts: 0 } });
  expect(model.asked[0]).toContain('def double_number');
  expect(model.asked[0]).not.toContain('return 2 * n');
  expect(world.outbox.of('skill_use')).toMatchObject([{ name: 'double_number', version: 1, success: true }]);
  expect(world.outbox.of('transition')).toMatchObject([{ transition: { attempt: 0, imported: ['double_number@1'] } }]);
});

it.each([
  ['declines', 'no'],
  ['does not import the function', fenced(PROGRAM)],
  ['is long', fenced(`${WRAPPER}\n${'# more\n'.repeat(60)}`)],
])('writes the whole program where the answer %s, and does not blame the function', async (_what, wrapper) => {
  const { world } = worldWith(wrapper);
  expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: PROGRAM }, usage: { modelCalls: 2 } });
  expect(world.outbox.of('skill_use')).toEqual([]);
});

it('continues with attempts where the wrapper is wrong', async () => {
  const { world } = worldWith(fenced(WRAPPER.replace('[double_number(n) for', '[-double_number(n) for')));
  expect(await world.run()).toMatchObject({ result: { verdict: 'AC', code: PROGRAM }, usage: { modelCalls: 2, attempts: 1 } });
  expect(world.outbox.of('skill_use')).toMatchObject([{ success: false }]);
});
