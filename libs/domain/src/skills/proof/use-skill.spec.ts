import type { Skill } from '@etude/contracts/memory';
import { describe, expect, it, vi } from 'vitest';
import { afterUse } from '../../retrieval/reinforce.js';
import { FakeMemoryOutbox } from '../../../test/fake-memory-outbox.js';
import { FakeSandboxes, type FakeRun } from '../../../test/fake-sandboxes.js';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { errorOf, registryOf, proven, provenSkillOf, TEST_SIGNER } from '../../../test/bundle-fixture.js';
import { skillOf } from '../../../test/memory-records.js';
import { type SkillCall, useSkill, type UseSkillDeps } from './use-skill.js';

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
    expect(await use()).toMatchObject({ outcome: 'used', success: true, name: 'add', version: 1, result: 11, error: '', exit: 'ok' });
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/) as string;
    const owner = { tenant: 'acme', agent: 'solver' };
    expect(uses()).toMatchObject([{ scope: reader, owner, name: 'add', version: 1, at: 5, inputDigest: digest, outputDigest: digest }]);
  });

  it('answers with the words of a procedure, counts that once for a use id, and takes no arguments', async () => {
    const { use, uses } = world([
      skillOf({ scope: reader, name: 'moor', kind: 'procedure', code: '', tests: [], status: 'active', description: 'Bow line first.' }),
    ]);
    for (let times = 0; times < 2; times += 1)
      expect(await use({ name: 'moor', parameters: {} })).toMatchObject({ outcome: 'used', success: true, output: 'Bow line first.' });
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
    expect([first, again].map((outcome) => 'result' in outcome && outcome.result)).toEqual([1, 1]);
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
    ['of other code than its evidence', {}, [{ ...ADD, code: 'def add(a, b): return 0' }], /does not match its evidence; verify it again/],
    [
      'in need of one without proof',
      { name: 'twice', parameters: { x: 1 } },
      [{ ...ADD, proof: undefined }, TWICE],
      /needs add@1, whose code does not match/,
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

  it.each([
    ['wall', 'it ran out of wall time'],
    ['oom', 'it ran out of memory'],
    ['disk', 'it wrote more than is allowed'],
  ] as const)('reports the exceeded limit %s', async (exit, error) => {
    const { use, uses } = failing({ exit, exitCode: null, error: { type: 'MemoryError', message: '', line: 1 } });
    expect(await use()).toMatchObject({ success: false, exit, error });
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
