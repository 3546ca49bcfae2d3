import type { Skill, SkillTest } from '@etude/contracts/memory';
import { describe, expect, it, vi } from 'vitest';
import { afterUse } from '../life/usage.js';
import { FakeMemoryOutbox } from '../../../test/fake-memory-outbox.js';
import { type FakeRun, FakeSandboxes } from '../../../test/fake-sandboxes.js';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { errorOf, proven, provenSkillOf, registryOf, TEST_SIGNER } from '../../../test/bundle-fixture.js';
import { skillOf } from '../../../test/memory-records.js';
import { type SkillCall, useSkill, type UseSkillDeps } from './use-skill.js';
import type { EtudeError } from '@etude/contracts/errors';
import { z } from 'zod';
import { inspectCode } from './inspect-code.js';
import { runTrial } from './run-skill-tests.js';

const reader = { tenant: 'acme', agent: 'solver', user: null };
const ADD = provenSkillOf('add', 'def add(a, b=10):\n    return a + b', { a: { type: 'integer' }, b: { type: 'integer', default: 10 } });
const TWICE = provenSkillOf(
  'twice',
  'from skills import add\ndef twice(x):\n    return add(x, x)',
  { x: { type: 'integer' } },
  { needs: [ADD] },
);
const SHOUT = provenSkillOf('shout', 'print(input().upper())', {}, { entryPoint: null, contract: undefined });

function world(skills: readonly Skill[], sandboxes: UseSkillDeps['sandboxes'] = new PythonSandboxes()) {
  const outbox = new FakeMemoryOutbox();
  const deps: UseSkillDeps = { procedural: registryOf(...skills), sandboxes, outbox, checker: TEST_SIGNER, clock: { now: () => 5 } };
  const use = (call: Partial<SkillCall> = {}) =>
    useSkill({ reader, name: 'add', parameters: { a: 1 }, useId: 'u1', ...call }, deps, new AbortController().signal);
  return { deps, use, uses: () => outbox.of('skill_use') };
}

const failing = (result: Awaited<ReturnType<FakeRun>>) => world([ADD], new FakeSandboxes(() => result));

describe('useSkill', () => {
  it('runs a skill with its defaults and counts the use', async () => {
    const { use, uses } = world([ADD]);
    expect(await use()).toMatchObject({ success: true, name: 'add', version: 1, result: 11, error: '' });
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/) as string;
    const owner = { tenant: 'acme', agent: 'solver' };
    expect(uses()).toMatchObject([{ scope: reader, owner, name: 'add', version: 1, at: 5, inputDigest: digest, outputDigest: digest }]);
  });

  it('answers with the words of a procedure, counts that once for a use id, and takes no arguments', async () => {
    const { use, uses } = world([
      skillOf({ scope: reader, name: 'moor', kind: 'procedure', code: '', tests: [], status: 'active', description: 'Bow line first.' }),
    ]);
    for (let times = 0; times < 2; times += 1)
      expect(await use({ name: 'moor', parameters: {} })).toMatchObject({ success: true, output: 'Bow line first.' });
    expect(uses()).toMatchObject([{ name: 'moor', version: 1, success: true }]);
    expect(await errorOf(use({ name: 'moor' }))).toBe('INVALID_ARGUMENT: moor is a procedure in words: it takes no parameters.');
  });

  it('runs beside the given files, which belong to the input', async () => {
    const sandboxes = new FakeSandboxes(() => ({ value: 1 }));
    const { use, uses } = world([ADD], sandboxes);
    const [one, other] = [btoa('one'), btoa('other')].map((contentBase64) => [{ path: 'a.txt', contentBase64 }]);
    await use({ files: one, useId: 'one' });
    await use({ files: other, useId: 'other' });
    expect(sandboxes.requests.map(({ files }) => files)).toEqual([one, other]);
    expect(new Set(uses().map(({ inputDigest }) => inputDigest)).size).toBe(2);
  });

  it('runs and counts a repeated use once', async () => {
    let runs = 0;
    const { use, uses } = world([ADD], new FakeSandboxes(() => ({ value: (runs += 1) })));
    const [first, again] = [await use(), await use()];
    expect([first, again]).toMatchObject([{ result: 1 }, { result: 1 }]);
    expect(uses()).toHaveLength(1);
    await use({ useId: 'u2' });
    await use({ reader: { ...reader, user: 'ann' } });
    expect([runs, uses().length]).toEqual([3, 3]);
  });

  it('uses different ids for the same use in two tenants', async () => {
    const everybodys = proven({ ...ADD, scope: { tenant: '@global', agent: '@tenant', user: null } });
    const sandboxes = new FakeSandboxes(() => ({ value: 1 }));
    const { use, deps } = world([everybodys], sandboxes);
    const put = vi.spyOn(deps.outbox, 'put');
    for (const tenant of ['acme', 'globex']) await use({ reader: { ...reader, tenant } });
    expect(sandboxes.requests.map(({ tenant }) => tenant)).toEqual(['acme', 'globex']);
    expect(new Set(put.mock.calls.map(([, writeId]) => writeId)).size).toBe(2);
  });

  it('runs nothing where the use id is taken', async () => {
    const { use, uses } = world([ADD]);
    expect([await errorOf(use({ claim: () => Promise.reject(new Error('taken')) })), uses()]).toEqual(['undefined: taken', []]);
  });

  it('passes input to a program and returns its output', async () => {
    const used = await world([SHOUT]).use({ name: 'shout', parameters: {}, stdin: 'hey' });
    expect(used).toMatchObject({ success: true, result: null, output: 'HEY\n' });
  });

  it.each<[string, Partial<SkillCall>, readonly Skill[], RegExp]>([
    [
      'rejected',
      {},
      [{ ...ADD, status: 'rejected', statusReason: 'its tests fail' }],
      /: Skill add is rejected, .* It was rejected: its tests fail$/,
    ],
    ['waiting', {}, [{ ...ADD, status: 'pending_review' }], /: Skill add is pending_review/],
    ['deprecated', {}, [{ ...ADD, status: 'deprecated' }], /: Skill add is deprecated/],
    ['archived', {}, [{ ...ADD, status: 'archived' }], /: Skill add is archived/],
    [
      'of other code than its evidence',
      {},
      [{ ...ADD, code: 'def add(a, b): return 0' }],
      /has no valid proof for its code; verify it again/,
    ],
    [
      'in need of one without proof',
      { name: 'twice', parameters: { x: 1 } },
      [{ ...ADD, proof: undefined }, TWICE],
      /needs add@1, which has no valid proof for its code/,
    ],
    ['given wrong arguments', { parameters: { a: 'x', c: 1 } }, [ADD], /^INVALID_ARGUMENT: .*parameters\.a .*parameters\.c is not known/],
    ['a program that is given parameters', { name: 'shout' }, [SHOUT], /^INVALID_ARGUMENT: .* takes no parameters/],
  ])('runs, claims and counts no skill that is %s', async (_what, call, skills, message) => {
    const sandboxes = new FakeSandboxes(() => ({}));
    const claim = vi.fn(async () => {});
    const { use, uses } = world(skills, sandboxes);
    expect(await errorOf(use({ ...call, claim }))).toMatch(message);
    expect([sandboxes.requests, uses(), claim.mock.calls]).toEqual([[], [], []]);
  });

  it('reports the failure of the code with the input', async () => {
    const { use, uses } = failing({ exit: 'nonzero', exitCode: 1, error: { type: 'ValueError', message: 'no', line: 2 } });
    expect(await use()).toMatchObject({ success: false, result: null, error: 'ValueError: no, line 2' });
    expect(uses()).toMatchObject([{ success: false, failure: { input: '{"a":1}', error: 'ValueError: no, line 2' } }]);
  });

  it('reports an exceeded limit in place of the error', async () => {
    const { use, uses } = failing({ exit: 'oom', exitCode: null, error: { type: 'MemoryError', message: '', line: 1 } });
    expect(await use()).toMatchObject({ success: false, error: 'it ran out of memory' });
    expect(uses()[0]).not.toHaveProperty('outputDigest');
  });

  it.each([
    ['a value', { value: 1 }, true],
    ['another exception', { exit: 'nonzero', error: { type: 'KeyError', message: 'no', line: 2 } }, true],
    ['other words of the same exception', { exit: 'nonzero', error: { type: 'ValueError', message: 'at 0x7f', line: 2 } }, false],
    ['a limit', { exit: 'wall', error: { type: 'KeyError', message: 'no', line: 2 } }, false],
    ['a kill', { exit: 'signal', signal: 9 }, false],
  ] as const)('compares an exception with %s for the same input', async (_, second, nondeterministic) => {
    const first = { exit: 'nonzero', error: { type: 'ValueError', message: 'no', line: 2 } } as const;
    let runs = 0;
    const { use, uses } = world([ADD], new FakeSandboxes(() => ((runs += 1) === 1 ? first : second)));
    for (const useId of ['u1', 'u2']) await use({ useId });
    expect(uses().reduce(afterUse, ADD).usage).toMatchObject({ used: 2, nondeterministic });
  });

  it('throws and counts nothing where the infrastructure failed', async () => {
    const { use, uses } = failing({ exit: 'node_lost' });
    expect(await errorOf(use())).toMatch(/^SANDBOX_UNAVAILABLE/);
    expect(uses()).toEqual([]);
  });
});

/** Reads the contract of the code's function `f` and calls it with these arguments. */
async function called(code: string, parameters: Record<string, unknown> = {}) {
  const found = await inspectCode({ code, entryPoint: 'f', name: 'f' }, { sandboxes: new PythonSandboxes(), tenant: 'acme' });
  if ('problems' in found) throw new Error(JSON.stringify(found.problems));
  const { contract } = found;
  const used = await world([provenSkillOf('f', code, {}, { contract })]).use({ name: 'f', parameters });
  if (!used?.success) throw new Error(JSON.stringify(used));
  return { result: used.result, contract };
}

const fieldsOf = (work: Promise<unknown>) =>
  work.then(
    () => [],
    (error: EtudeError) => (error.details.violations ?? []).map(({ field }) => field),
  );

describe('a skill that is used by names', () => {
  it.each([
    ['def f(a, /, b): return a - b', { b: 1, a: 5 }, 4],
    ['def f(*rest: int): return sum(rest)', { rest: [1, 2, 3] }, 6],
    ['def f(a, b=2, *rest, c=4): return [a, b, list(rest), c]', { a: 1, b: 2, rest: [3], c: 5 }, [1, 2, [3], 5]],
    ['def f(a, /, b=2, *rest): return [a, b, list(rest)]', { a: 1, b: 7 }, [1, 7, []]],
    ['def f(a, **more): return [a, more]', { a: 1, x: 2, y: 3 }, [1, { x: 2, y: 3 }]],
    ['def f(a, /, *rest, **more): return [a, list(rest), more]', { a: 1, rest: [2], more: 3 }, [1, [2], { more: 3 }]],
    ['f = lambda a, /, *rest: [a, len(rest)]', { a: 1, rest: [2] }, [1, 1]],
  ])('gives each argument its place: %s', async (code, parameters, result) => {
    expect((await called(code, parameters)).result).toEqual(result);
  });

  it.each([
    ['def f(n: int, key: tuple = (1, 2)): return {(1, 2): 5}[key] * n', { n: 2 }, 10],
    ['def f(name: str, ratio: float = 1.0): return name + str(ratio)', { name: 'x' }, 'x1.0'],
    ['def f(n: int, seen: set = {1}): return n in seen', { n: 1 }, true],
    ['def f(a, b=frozenset("x"), /): return [a, list(b)]', { a: 1 }, [1, ['x']]],
  ])('leaves defaults that JSON lacks to Python: %s', async (code, parameters, result) => {
    expect((await called(code, parameters)).result).toEqual(result);
  });

  it('names a parameter omitted before a positional one', async () => {
    const wrong = called('def f(a, b=2, c=3, /): return a', { a: 1, c: 4 });
    await expect(wrong).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', details: { field: 'parameters.b' } });
  });

  it('passes 2.0 as the int 2, in calls and in tests', async () => {
    const x = JSON.parse('2.0') as number;
    const code = 'def f(x: float): return repr(x)';
    expect((await called(code, { x })).result).toBe('2');
    const tests: SkillTest[] = [{ kind: 'call', args: [x], kwargs: {}, expected: '2', tolerance: 0 }];
    const trial = { step: 'a', code, entryPoint: 'f', tests };
    const place = { sandboxes: new PythonSandboxes(), idPrefix: 'ints', tenant: 'acme', signal: new AbortController().signal };
    expect(await runTrial(trial, place)).toMatchObject({ passed: true });
  });

  it('refuses wrong values for *rest and **more', async () => {
    expect(await fieldsOf(called('def f(*rest: int): ...', { rest: ['x'] }))).toEqual(['parameters.rest.0']);
    expect(await fieldsOf(called('def f(*rest: int): ...', { rest: 1 }))).toEqual(['parameters.rest']);
    expect(await fieldsOf(called('def f(**more: int): ...', { x: 'y' }))).toEqual(['parameters.x']);
  });
});

describe('a result', () => {
  it.each([
    ['set[int]', '{3, 1}', [1, 3]],
    ['frozenset[str] | None', 'frozenset("a")', ['a']],
    ['bytes', 'b"hi"', 'aGk='],
    ['complex', '1 + 2j', [1, 2]],
    ['dict[int, str]', '{1: "a"}', [[1, 'a']]],
    ['dict[int, str]', '{}', {}],
    ['dict', '{(1, 2): 3}', [[[1, 2], 3]]],
    ['dict[str, bytes]', '{"a": b"hi", "$b": b""}', { a: 'aGk=', $b: '' }],
    ['tuple[int, complex]', '(1, 2j)', [1, [0, 2]]],
  ])('of type %s matches its schema: %s', async (type, value, expected) => {
    const { result, contract } = await called(`def f() -> ${type}: return ${value}`);
    expect(result).toEqual(expected);
    const schema = z.fromJSONSchema(contract.outputSchema ?? false);
    expect(schema.safeParse(result)).toMatchObject({ success: true });
    // Only a dictionary, which may have any key, is written as an object.
    expect(schema.safeParse({ $set: [1] }).success).toBe(
      type.startsWith('dict') && type !== 'dict[str, bytes]' && type !== 'dict[int, str]',
    );
  });
});
