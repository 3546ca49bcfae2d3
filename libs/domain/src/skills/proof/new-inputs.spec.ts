import type { Json } from '@etude/contracts/json';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { candidate } from '../../../test/admission-fixture.js';
import { NO_GROUND } from '../../../test/bundle-fixture.js';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { call as callOf, io } from '../../../test/skill-tests.js';
import { newInputs } from './new-inputs.js';
import { verifySkill } from './verify-skill.js';

const call = (arg: Json, expected: Json) => callOf([arg], expected);
const deps = { sandboxes: new PythonSandboxes(), analyser: { analyse: async () => [] }, mutationScoreMin: 0.5, ground: NO_GROUND };

function verify(code: string, tests: SkillTest[], more: Partial<Skill> = {}, agent = '@tenant') {
  const scope = { tenant: 'acme', agent, user: null };
  const entryPoint = code.startsWith('def ') ? 'f' : null;
  return verifySkill(candidate({ code, tests, entryPoint, scope, origin: 'person', ...more }), deps, new AbortController().signal);
}

const SQUARES = [call(2, 4), call(5, 25), call(9, 81)];
const TABLE = '{2: 4, 5: 25, 9: 81}';
const UPPER = [call('one', 'ONE'), call('two', 'TWO'), call('six', 'SIX')];

describe('a skill that others share', () => {
  it.each([
    ['fails outside its table', `def f(n):\n    return ${TABLE}[n]`, SQUARES],
    ['gives a constant outside its table', `def f(n):\n    return ${TABLE}.get(n, 49)`, SQUARES],
    ['gives the input outside its table', `def f(n):\n    return ${TABLE}.get(n, n)`, SQUARES],
    ['takes the nearest of its table', `def f(n):\n    table = ${TABLE}\n    return table[min(table, key=lambda k: abs(k - n))]`, SQUARES],
    ['prints from a table', 'print({"2": 4, "5": 25, "9": 81}[input()])', [io('2', '4'), io('5', '25'), io('9', '81')]],
  ])('is rejected if it %s', async (_how, code, tests) => {
    const reason = expect.stringMatching(/^it may know only its tests: /);
    expect(await verify(code, tests)).toMatchObject({ passed: false, reason });
  });

  it('is shown to a reviewer with the doubt if held-out tests pass', async () => {
    const code = 'def f(s):\n    return s.isdigit() and int(s) % 97 == 1';
    const tests = [call('98', true), call('195', true), call('100', false)];
    expect(await verify(code, tests)).toMatchObject({ passed: false, reason: expect.stringContaining('add held-out tests') });
    const vouched = await verify(code, tests, { heldOut: [call('292', true)] });
    expect(vouched).toMatchObject({ passed: true, evidence: expect.arrayContaining([expect.stringContaining('may know only its tests')]) });
    const table = await verify(`def f(n):\n    return ${TABLE}[n]`, SQUARES, { heldOut: [call(2, 4)] });
    expect(table).toMatchObject({ passed: false, reason: expect.stringContaining('it answers none of') });
  });

  it('may be a table where only its own agent reads it', async () => {
    expect(await verify(`def f(n):\n    return ${TABLE}[n]`, SQUARES, {}, 'solver')).toMatchObject({ passed: true });
  });

  it.each([
    ['computes', 'def f(n):\n    return n * n', SQUARES],
    ['changes text', 'def f(s):\n    return s.upper()', UPPER],
    ['prints', 'print(int(input()) ** 2)', [io('2', '4'), io('5', '25'), io('9', '81')]],
    [
      'has seldom another answer',
      'def f(y):\n    return y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)',
      [call(2000, true), call(1900, false), call(2024, true), call(2023, false)],
    ],
    ['answers yes or no', 'def f(s):\n    return s == s[::-1]', [call('abba', true), call('abc', false), call('x', true)]],
    [
      'refuses some inputs',
      'def f(s):\n    if len(s) % 2:\n        raise ValueError(s)\n    return s[: len(s) // 2]',
      [call('abcd', 'ab'), call('xy', 'x'), call('qwerty', 'qwe')],
    ],
  ])('is verified if it %s', async (_how, code, tests) => {
    const { passed, reason, evidence, found } = await verify(code, tests);
    expect({ passed, reason }).toEqual({ passed: true, reason: '' });
    expect(evidence).toContainEqual(expect.stringMatching(/^it answers \d+ of \d+ inputs that no test has$/));
    expect(found.generatedAnswers).toBeGreaterThan(1);
  });

  it('needs tests of others where no inputs can be made', async () => {
    const code = 'def f(n):\n    return n * n';
    const tests: SkillTest[] = [{ kind: 'python', setup: '', tests: 'assert f(3) == 9\nassert f(4) == 16' }];
    expect(await verify(code, tests)).toMatchObject({ passed: false, reason: expect.stringContaining('add held-out tests') });
    expect(await verify(code, tests, { heldOut: [call(7, 49)] })).toMatchObject({ passed: true });
    expect(await verify(code, tests, { origin: 'rollout' })).toMatchObject({ passed: true });
  });
});

describe('newInputs', () => {
  it('keeps the kinds of values and gives each test its turn', () => {
    const made = newInputs([call({ name: 'a1', on: true, ids: [1, 2] }, 0), call({ $set: [1] }, 0), call(0, 0)]);
    const given = made.map((input) => (input.kind === 'call' ? input.args[0] : null));
    expect(given).toContainEqual({ name: 'a2', on: true, ids: [1, 2] });
    expect(given).toContainEqual({ name: 'a1', on: false, ids: [1, 2] });
    expect(given.slice(0, 2)).toContain(1);
    expect(given).not.toContain(-1);
    expect(made.length).toBeLessThanOrEqual(24);
  });

  it('makes none that a test has', () => {
    expect(newInputs([call(1, 0), call(2, 0), call(4, 0)]).map((input) => input.kind === 'call' && input.args[0])).toEqual([3, 5, 8, 0, 7]);
  });
});
