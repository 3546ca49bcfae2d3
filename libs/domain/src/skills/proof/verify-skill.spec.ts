import { isRetryable } from '@etude/contracts/errors';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { ExecutionRequest } from '@etude/contracts/sandbox';
import type { SkillFinding } from '@etude/contracts/skill-proof';
import { describe, expect, it } from 'vitest';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { call, io } from '../../../test/skill-tests.js';
import { CLEAN_RUN } from '../../../test/run-results.js';
import { candidate } from '../../../test/admission-fixture.js';
import { NO_GROUND, skillOf as named } from '../../../test/bundle-fixture.js';
import { analyseSkill, type VerificationDeps, verifySkill } from './verify-skill.js';
import { Buffer } from 'node:buffer';

const skillOf = (code: string, tests: SkillTest[], entryPoint: string | null = null): Skill => candidate({ code, tests, entryPoint });
const verify = (skill: Skill, sandboxes: Sandboxes = new PythonSandboxes(), deps: Partial<VerificationDeps> = {}) =>
  verifySkill(
    skill,
    { sandboxes, analyser: { analyse: async () => [] }, mutationScoreMin: 0.5, ground: NO_GROUND, ...deps },
    new AbortController().signal,
  );

describe('verifySkill', () => {
  it('passes a program whose tests notice mutants', async () => {
    const skill = skillOf('n = int(input())\nprint(n * 2)', [io('2', '4'), io('5', '10')]);
    expect(await verify({ ...skill, heldOut: [io('3', '6')] })).toMatchObject({
      passed: true,
      reason: '',
      evidence: [
        'the code parses',
        'static analysis found nothing',
        'its tests pass twice with the same results (2)',
        'its held-out tests pass (1)',
        'its tests fail on 4 of 4 mutants',
      ],
      found: { testsPassed: 2, heldOutPassed: 1, mutantsMade: 4, mutantsNoticed: 4, mutantsSurvived: [] },
    });
  });

  it('shows call, expectation and result to the author of the tests only', async () => {
    const double = skillOf('def double(n, by=2):\n    return n * 3', [call([2], 4)], 'double');
    const told = async (skill: Skill) => (await verify({ ...skill, origin: 'person' })).reason;
    expect(await told(double)).toBe('its tests fail: test 1 of 1: wrong answer; {"args":[2],"kwargs":{},"expected":4} gave 6');
    expect((await verify(double)).reason).toBe('its tests fail: test 1 of 1: wrong answer');
    expect(await told({ ...double, tests: [call(['a\n'.repeat(200)], '')] })).toMatch(/; \{"args":\["a\\n.*… gave "a\\n.*…$/);
    expect(await told(skillOf('print(3)', [io('2', '4')]))).toMatch(/wrong answer; \{"stdin":"2".* gave "3\\n"$/);
    expect(await told(skillOf('def f(n):\n    return 1 // n', [call([0], 4)], 'f'))).toMatch(/ZeroDivisionError.*"expected":4\}/);
    const heldOut = await told({ ...skillOf('def f(n):\n    return n + 1', [call([1], 2), call([4], 5)], 'f'), heldOut: [call([77], 4)] });
    expect(heldOut).toBe('its held-out tests fail: wrong answer');
  });

  it('rejects tests that no mutant fails', async () => {
    const idle = skillOf('def idle(n):\n    return None', [call([1], null)], 'idle');
    expect(await verify(idle)).toMatchObject({ passed: false, reason: 'its tests prove nothing: no mutant could be made' });
    const weak = skillOf('def double(n):\n    return n * 2', [{ kind: 'python', setup: '', tests: 'assert callable(double)' }], 'double');
    expect(await verify(weak)).toMatchObject({
      passed: false,
      reason: expect.stringMatching(/^its tests notice 0 of \d mutants, and at least \d/),
    });
  });

  it('rejects answers that change with the hash seed', async () => {
    const sandboxes = new PythonSandboxes();
    const seeded = {
      async execute(request: ExecutionRequest) {
        const answer = await sandboxes.execute(request);
        const runs = answer.runs.map((run) =>
          run.value === undefined ? run : { ...run, value: Number(run.value) + (request.hashSeed === undefined ? 0 : 1e-12) },
        );
        return { ...answer, runs };
      },
    };
    const test: SkillTest = { kind: 'call', args: [1], kwargs: {}, expected: 1 / 3, tolerance: 1e-6 };
    const skill = skillOf('def third(n):\n    return n / 3', [test], 'third');
    expect(await verify(skill, seeded)).toMatchObject({
      passed: false,
      reason: 'its tests give other results under another hash seed and clock: test 1 of 1: it gave another value',
    });
  });

  it('parses a snippet and never runs it', async () => {
    const sandboxes = new PythonSandboxes();
    const snippet = skillOf('class double:\n    pass', [call([1], 2)], 'double');
    expect(await verify(snippet, sandboxes)).toMatchObject({
      passed: true,
      evidence: ['the code parses', 'static analysis found nothing', 'a snippet is shown, never run'],
    });
    expect(sandboxes.requests).toHaveLength(1);
  });

  it('repeats execution ids, except for another tenant, attempt or held-out test', async () => {
    const sandboxes = new PythonSandboxes();
    const skill = skillOf('print(int(input()) * 2)', [io('2', '4')]);
    const ids = async (changes: Partial<Skill> = {}, attempt = 1) => {
      sandboxes.requests.length = 0;
      await verify({ ...skill, ...changes }, sandboxes, { attempt });
      return sandboxes.requests.map(({ executionId }) => executionId);
    };
    const once = await ids();
    expect(new Set(once).size).toBe(once.length);
    expect(await ids()).toEqual(once);
    const others = [await ids({}, 2), await ids({ scope: { ...skill.scope, tenant: 'other' } }), await ids({ heldOut: [io('3', '6')] })];
    expect(others.flat().filter((id) => once.includes(id))).toEqual([]);
  });

  it('throws a retryable error when a sandbox is lost', async () => {
    const lost = {
      execute: async ({ executionId }: ExecutionRequest) => ({ executionId, runs: [{ ...CLEAN_RUN, exit: 'infra' as const }] }),
    };
    const error: unknown = await verify(skillOf('print(1)', [io('', '1')]), lost).catch((thrown: unknown) => thrown);
    expect(isRetryable(error)).toBe(true);
  });
});

const finding = (rule: string, severity: SkillFinding['severity']): SkillFinding => ({
  analyser: 'ruff',
  rule,
  severity,
  line: 2,
  message: 'it looks odd',
});

const reasonOf = async (skill: Skill, deps: Partial<VerificationDeps> = {}) => (await verify(skill, new PythonSandboxes(), deps)).reason;

describe('a reason against a skill', () => {
  const double = 'def double(n: int) -> int:\n    return n * 2';
  const tests = [call([2], 4), call([3], 6)];

  it('is a secret, but no other finding', async () => {
    const skill = skillOf(double, tests, 'double');
    const found = (...findings: SkillFinding[]) =>
      verify(skill, new PythonSandboxes(), { analyser: { analyse: async (text) => (text === double ? findings : []) } });
    expect(await found(finding('S102', 'error'), finding('S311', 'warning'))).toMatchObject({
      passed: true,
      found: { findings: [{ rule: 'S102' }, { rule: 'S311' }] },
      evidence: expect.arrayContaining(['static analysis found 1 errors, 1 warnings and 0 notes']),
    });
    expect(await found(finding('secret/openai', 'error'))).toMatchObject({
      passed: false,
      reason: expect.stringMatching(/^the skill holds a secret: line 2: it looks odd/),
    });
  });

  const doubling = skillOf(double, tests, 'double');
  const program = skillOf('print(int(input()) * 2)', [io('2', '4')]);
  const declared = { name: 'm', type: 'int', description: '', required: true };
  const replacing = (kind: Skill['kind']) => [{ ...doubling, kind, version: 2 }, { ground: { ...NO_GROUND, replaced: doubling } }] as const;

  it.each<[string, Skill, Partial<VerificationDeps>, RegExp]>([
    [
      'code that is not Python',
      skillOf('print(1\nx ==', [io('', '1')]),
      {},
      /^the code is refused: line 1: it does not parse: SyntaxError/,
    ],
    [
      'a parameter that is declared otherwise',
      { ...doubling, parameters: [declared] },
      {},
      /differs from its declaration: parameter "m": .*; parameter "n":/,
    ],
    ['a class', { ...skillOf('class double: ...', tests, 'double'), kind: 'function' }, {}, /register it as a snippet$/],
    ['a function that is registered as a snippet', { ...doubling, kind: 'snippet' }, {}, /^the code defines the function double/],
    ['a call of a program', { ...program, tests }, {}, /^it is a program and has tests that call/],
    ['a run of a function', { ...doubling, heldOut: [io('2', '4')] }, {}, /^it is the function double and has tests that run a program/],
    ['a lack of tests', { ...doubling, tests: [] }, {}, /^it has no tests$/],
    ['a call of a skill without a pin', skillOf(`from skills import other\n${double}`, tests, 'double'), {}, /not pinned to: other;/],
    [
      'a held-out test of the version before',
      { ...skillOf('def double(n):\n    return n + n', tests, 'double'), version: 2 },
      { ground: { ...NO_GROUND, replaced: { ...doubling, heldOut: [call([5], 11)] } } },
      /^its held-out tests fail: wrong answer$/,
    ],
    ['a snippet in place of a function', ...replacing('snippet'), /^the new version is a snippet, but the active version 1 is a function/],
  ])('is %s', async (_what, skill, deps, reason) => {
    expect(await reasonOf(skill, deps)).toMatch(reason);
  });

  it('is too large a share of unnoticed mutants', async () => {
    const loose = skillOf('def double(n):\n    return n * 2 if n < 100 else n + 50', [call([2], 4)], 'double');
    const { reason, found } = await verify(loose, new PythonSandboxes(), { mutationScoreMin: 0.9 });
    expect(reason).toMatch(/^its tests notice \d of \d mutants, and at least \d are required; not noticed: line 2: /);
    expect(found.mutantsSurvived.length).toBe(found.mutantsMade - found.mutantsNoticed);
    expect(await verify(loose, new PythonSandboxes(), { mutationScoreMin: 0 })).toMatchObject({ passed: true });
  });

  it('names only the kind of failure of tests that are not the author’s', async () => {
    const spying = 'def double(n):\n    if n > 100:\n        raise NameError(str(n))\n    return n * 2';
    const skill = { ...skillOf(spying, tests, 'double'), origin: 'person' as const };
    expect(await reasonOf({ ...skill, heldOut: [call([777], 1554)] })).toBe('its held-out tests fail: it ended with an error');
    const replaced = skillOf(double, [call([424], 848)], 'double');
    expect(await reasonOf({ ...skill, version: 2 }, { ground: { ...NO_GROUND, replaced } })).toBe(
      'the tests of version 1, which it would replace, fail: test 1 of 1: it ended with an error',
    );
  });

  it('runs tests of the version before under the name that they call', async () => {
    const replaced = skillOf(double, [{ kind: 'python', setup: '', tests: 'assert double(4) == 8' }], 'double');
    const renamed = { ...skillOf('def twice(n):\n    return n + n', tests, 'twice'), version: 2 };
    expect(await verify(renamed, new PythonSandboxes(), { ground: { ...NO_GROUND, replaced } })).toMatchObject({
      passed: true,
      found: { kept: [{ name: replaced.name, version: 1, digest: replaced.digest }] },
    });
  });
});

describe('skills that call a skill', () => {
  const step = named('step', 'def step(n):\n    return n + 1', { tests: [call([1], 2), call([5], 6)] });
  const twice = named('twice', 'from skills import step\ndef twice(n):\n    return step(step(n))', {
    tests: [call([1], 3)],
    needs: [step],
  });
  it('run with its pinned version', async () => {
    const verification = await verify(twice, new PythonSandboxes(), { ground: { ...NO_GROUND, needed: [step] } });
    expect(verification).toMatchObject({ passed: true, found: { mutantsMade: 1, mutantsNoticed: 1 } });
  });

  it('are compared with similar skills', async () => {
    const same = named('plus_one', 'def plus_one(n):\n    return n + 1', { tests: [call([3], 4)] });
    const other = named('plus_two', 'def plus_two(n):\n    return n + 2', { tests: [call([3], 5)] });
    const similar = [same, other].map((skill) => ({ skill, similarity: 0.9, pins: [], needed: [] }));
    const { found, passed } = await verify(step, new PythonSandboxes(), { ground: { ...NO_GROUND, similar } });
    expect({ passed, alike: found.alike }).toEqual({
      passed: true,
      alike: [
        { name: 'plus_one', agent: 'solver', user: null, version: 1, similarity: 0.9, passesTheirs: true, theyPass: true },
        { name: 'plus_two', agent: 'solver', user: null, version: 1, similarity: 0.9, passesTheirs: false, theyPass: false },
      ],
    });
  });
});

it('parses no procedure in words', async () => {
  const sandboxes = new PythonSandboxes();
  const procedure = { ...skillOf('First stir,\nthen bake.', [io('', '')]), kind: 'procedure' as const, tests: [] };
  expect(await verify(procedure, sandboxes)).toMatchObject({ passed: true });
  expect(await verify({ ...procedure, code: '' }, sandboxes)).toMatchObject({ passed: true });
  expect(sandboxes.requests).toEqual([]);
});

const FOUND: SkillFinding = { analyser: 'a', rule: 'secret/x', severity: 'error', line: 3, message: 'found' };
const { signal } = new AbortController();

function asked() {
  const calls: string[] = [];
  const analyse = async (text: string, _signal?: AbortSignal, language?: string) => {
    calls.push(`${language}: ${text}`);
    return text.includes('SECRET') ? [FOUND] : [];
  };
  return { calls, analyser: { analyse } };
}
const file = (path: string, text: string) => ({ path, contentBase64: Buffer.from(text).toString('base64') });
const test: SkillTest = { kind: 'python', setup: '', tests: 'SECRET' };

it('analyses code as Python and a procedure as text', async () => {
  const { calls, analyser } = asked();
  await analyseSkill({ kind: 'function', code: 'a', tests: [] }, analyser, signal);
  await analyseSkill({ kind: 'procedure', code: 'b', tests: [] }, analyser, signal);
  expect(calls.filter((one) => /[ab]$/.test(one))).toEqual(['python: a', 'text: b']);
});

it('analyses files and tests, and names the place of a finding', async () => {
  const { calls, analyser } = asked();
  const files = [file('scripts/x.py', 'SECRET'), file('notes.md', 'fine'), file('logo.png', '\0SECRET')];
  const found = await analyseSkill({ kind: 'procedure', code: '', tests: [], heldOut: [test], files }, analyser, signal);
  expect(found.map(({ line, message }) => [line, message])).toEqual([
    [null, 'tests, line 3: found'],
    [null, 'scripts/x.py, line 3: found'],
  ]);
  expect(calls.slice(-2)).toEqual(['python: SECRET', 'text: fine']);
});

it.each<[string, Partial<Skill>]>([
  ['description', { description: 'SECRET' }],
  ['display name', { displayName: 'SECRET' }],
  ['category', { category: 'SECRET' }],
  ['tags', { tags: ['SECRET'] }],
  ['example prompts', { examplePrompts: ['log in with SECRET'] }],
  ['parameters', { parameters: [{ name: 'a', type: '', description: 'SECRET', required: true }] }],
  ['metadata', { metadata: { note: 'SECRET' } }],
  ['file names', { files: [file('SECRET.md', 'fine')] }],
])('searches the words about a skill for secrets: %s', async (_place, said) => {
  const found = await analyseSkill({ kind: 'function', code: '', tests: [], ...said }, asked().analyser, signal);
  expect(found.map(({ message }) => message)).toEqual(['its words, line 3: found']);
});
