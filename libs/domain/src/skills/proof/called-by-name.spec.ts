import type { EtudeError } from '@etude/contracts/errors';
import type { SkillTest } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { FakeMemoryOutbox } from '../../../test/fake-memory-outbox.js';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { inspectCode } from './inspect-code.js';
import { runTrial } from './run-skill-tests.js';
import { registryOf, skillOf, proven, TEST_SIGNER } from '../../../test/bundle-fixture.js';
import { useSkill } from './use-skill.js';

const sandboxes = new PythonSandboxes();
const reader = { tenant: 'acme', agent: 'solver', user: null };

/** Reads the contract of the code's function `f` and calls it with these arguments. */
async function called(code: string, parameters: Record<string, unknown> = {}) {
  const found = await inspectCode({ code, entryPoint: 'f', name: 'f' }, { sandboxes, tenant: 'acme' });
  if ('problems' in found) throw new Error(JSON.stringify(found.problems));
  const skill = proven(skillOf('f', code, { contract: found.contract }));
  const deps = { procedural: registryOf(skill), sandboxes, outbox: new FakeMemoryOutbox(), checker: TEST_SIGNER, clock: { now: () => 5 } };
  const used = await useSkill({ reader, name: 'f', parameters, useId: 'u1' }, deps, new AbortController().signal);
  if (used.outcome !== 'used' || !used.success) throw new Error(JSON.stringify(used));
  return { result: used.result, contract: found.contract };
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
    const place = { sandboxes, idPrefix: 'ints', tenant: 'acme', signal: new AbortController().signal };
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
    // A dictionary may have any key; nothing else is written as an object.
    expect(schema.safeParse({ $set: [1] }).success).toBe(
      type.startsWith('dict') && type !== 'dict[str, bytes]' && type !== 'dict[int, str]',
    );
  });
});
