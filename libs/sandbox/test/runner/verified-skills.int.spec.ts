import type { Skill, SkillTest } from '@etude/contracts/memory';
import { skillOf, type SkillGiven } from '@etude/domain/testing/bundle-fixture';
import { inspectCode } from '@etude/domain/skills/proof/inspect-code';
import { type Verification, verifySkill } from '@etude/domain/skills/proof/verify-skill';
import { call } from '@etude/domain/testing/skill-tests';
import { describe, expect, it } from 'vitest';
import { useSandboxes } from '../sandbox-fixture.js';

const sandboxes = useSandboxes({ warm: 2 });
const analyser = { analyse: async () => [] };
const DOUBLE = [call([2], 4), call([3], 6), call([0], 0)];

let attempts = 0;
function verify(skill: Skill): Promise<Verification> {
  const ground = { replaced: null, needed: [], dependents: [], similar: [] };
  const deps = { sandboxes: sandboxes.sandboxes, analyser, mutationScoreMin: 0.5, ground, attempt: (attempts += 1) };
  return verifySkill(skill, deps, new AbortController().signal);
}
const reasonFor = async (code: string, tests = DOUBLE, given: SkillGiven = {}) =>
  (await verify(skillOf('double', code, { tests, ...given }))).reason;

describe('a skill in the sandbox', () => {
  it('is verified with its contract and mutants', async () => {
    expect(await verify(skillOf('double', 'def double(n: int) -> int:\n    return n * 2', { tests: DOUBLE }))).toMatchObject({
      passed: true,
      contract: { signature: 'def double(n: int) -> int' },
      found: { testsPassed: 3, mutantsMade: 3, mutantsNoticed: 3 },
    });
  });

  it.each([
    [
      'the clock',
      'import time\ndef double(n):\n    return n * 2 if time.time() < 2_000_000_000 else 7',
      /under another hash seed and clock/,
    ],
    ['the order of a set, in what it prints', 'def double(n):\n    print(*set("abcdefgh"))\n    return n * 2', /it printed something else/],
    ['chance', 'import random\ndef double(n):\n    return n * 2 + random.random() * 1e-9', /^its tests fail|other results/],
  ])('is not verified if its answers depend on %s', async (_what, code, reason) => {
    expect(await reasonFor(code)).toMatch(reason);
  });

  it('is not verified if test code sees other output under another hash seed', async () => {
    const checked: SkillTest[] = [{ kind: 'python', setup: '', tests: 'assert double(2) == 4\nassert double(3) == 6' }];
    expect(await reasonFor('def double(n):\n    print(*set("abcdefgh"))\n    return n * 2', checked)).toMatch(
      /^its tests give other results under another hash seed and clock: test 1 of 1: it printed something else/,
    );
  });

  it('is parsed within its limits at any nesting', async () => {
    const deep = [
      '('.repeat(5_000),
      `${'['.repeat(90)}${']'.repeat(90)}`,
      `${'-'.repeat(100_000)}1`,
      `${'f('.repeat(150)}${')'.repeat(150)}`,
    ];
    for (const expression of deep) {
      const inspected = await inspectCode(
        { code: `X = 1\ndef f(a):\n    return ${expression}\n`, entryPoint: null },
        { sandboxes: sandboxes.sandboxes, tenant: 'acme' },
      );
      expect('problems' in inspected || inspected.kind === 'function').toBe(true);
    }
    const wide = `def f(a):\n${'    a = a + 1\n'.repeat(15_000)}    return a\n`;
    expect(await inspectCode({ code: wide, entryPoint: null }, { sandboxes: sandboxes.sandboxes, tenant: 'acme' })).toMatchObject({
      kind: 'function',
    });
  });
});
