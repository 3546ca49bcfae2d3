import { isRetryable } from '@etude/contracts/errors';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { ExecutionRequest } from '@etude/contracts/sandbox';
import { describe, expect, it } from 'vitest';
import type { Sandboxes } from '../ports/sandboxes.js';
import { PythonSandboxes } from '../testing/python-sandboxes.js';
import { CLEAN_RUN } from '../testing/run-results.js';
import { candidateFromTests } from './skill-candidate.js';
import { NO_GROUND, type VerificationDeps, verifySkill } from './verify-skill.js';

function skillOf(code: string, tests: SkillTest[], entryPoint: string | null = null): Skill {
  const scope = { tenant: 'acme', agent: 'solver', user: null };
  const skill = candidateFromTests({
    scope,
    prompt: 'Double it.',
    fingerprint: 'f',
    code,
    description: 'Doubles.',
    scenarios: [],
    model: 'm',
    scripted: true,
    at: 1,
    entryPoint,
    tests,
    sources: [],
  });
  if (skill === null) throw new Error('no candidate');
  return skill;
}
const io = (stdin: string, expectedStdout: string): SkillTest => ({
  kind: 'io',
  stdin,
  expectedStdout,
  comparison: 'whitespace',
  tolerance: 0,
});
const call = (args: number[], expected: number | null): SkillTest => ({ kind: 'call', args, kwargs: {}, expected, tolerance: 0 });
const analyser = { analyse: async () => [] };
const verify = (skill: Skill, sandboxes: Sandboxes = new PythonSandboxes(), deps: Partial<VerificationDeps> = {}) =>
  verifySkill(skill, { sandboxes, analyser, mutationScoreMin: 0.5, ground: NO_GROUND, ...deps }, new AbortController().signal);

describe('verifySkill', () => {
  it('passes a program whose tests notice broken copies', async () => {
    const verification = await verify(skillOf('n = int(input())\nprint(n * 2)', [io('2', '4'), io('5', '10')]));
    expect(verification).toMatchObject({
      passed: true,
      reason: '',
      evidence: [
        'the code parses',
        'static analysis found nothing',
        'its tests pass twice with the same results (2)',
        'its tests fail on 4 of 4 copies broken on purpose',
      ],
      found: { testsPassed: 2, mutantsMade: 4, mutantsNoticed: 4, mutantsSurvived: [] },
    });
  });

  it('passes functions and test code alike', async () => {
    const code = 'def double(n):\n    return n * 2';
    expect(await verify(skillOf(code, [call([2], 4), call([3], 6)], 'double'))).toMatchObject({ passed: true });
    expect(
      await verify(skillOf(code, [{ kind: 'python', setup: 'import math\n', tests: 'assert double(3) == 6' }], 'double')),
    ).toMatchObject({ passed: true });
  });

  it('rejects code that does not parse, with the line', async () => {
    expect(await verify(skillOf('print(1\nx ==', [io('', '1')]))).toMatchObject({
      passed: false,
      reason: expect.stringMatching(/^the code is refused: line 1: it does not parse: SyntaxError/),
    });
  });

  it('rejects code whose tests fail', async () => {
    expect(await verify(skillOf('print(3)', [io('2', '4')]))).toMatchObject({
      passed: false,
      reason: 'its tests fail: test 1 of 1: wrong answer',
      evidence: ['the code parses', 'static analysis found nothing'],
    });
  });

  it('rejects tests that no broken copy fails', async () => {
    const idle = skillOf('def idle(n):\n    return None', [call([1], null)], 'idle');
    expect(await verify(idle)).toMatchObject({ passed: false, reason: 'its tests prove nothing: no broken copy could be made' });
    const weak = skillOf('def double(n):\n    return n * 2', [{ kind: 'python', setup: '', tests: 'assert callable(double)' }], 'double');
    expect(await verify(weak)).toMatchObject({ passed: false, reason: 'its tests prove nothing: they pass on every broken copy' });
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
    const skill = skillOf(
      'def third(n):\n    return n / 3',
      [{ kind: 'call', args: [1], kwargs: {}, expected: 1 / 3, tolerance: 1e-6 }],
      'third',
    );
    expect(await verify(skill, seeded)).toMatchObject({
      passed: false,
      reason: 'its tests give other results under another hash seed and clock',
    });
  });

  it('holds a new version to the tests of the old one', async () => {
    const replaced = skillOf('print(int(input()) * 2)', [io('2', '4'), io('9', '18')]);
    const skill = { ...skillOf('n = int(input())\nprint(n + 2)', [io('2', '4')]), version: 2 };
    const verification = await verify(skill, new PythonSandboxes(), { ground: { ...NO_GROUND, replaced } });
    expect(verification.reason).toMatch(/^the tests of version 1, which it would replace, fail:/);
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

  it('asks for the same executions when repeated, others for another tenant or try', async () => {
    const sandboxes = new PythonSandboxes();
    const skill = skillOf('print(int(input()) * 2)', [io('2', '4')]);
    const ids = async (tested: Skill, attempt: number) => {
      sandboxes.requests.length = 0;
      await verify(tested, sandboxes, { attempt });
      return sandboxes.requests.map(({ executionId }) => executionId);
    };
    const once = await ids(skill, 1);
    expect(new Set(once).size).toBe(once.length);
    expect(await ids(skill, 1)).toEqual(once);
    expect(await ids(skill, 2)).not.toContain(once[0]);
    expect(await ids({ ...skill, scope: { ...skill.scope, tenant: 'other' } }, 1)).not.toContain(once[0]);
  });

  it('rejects nothing when a sandbox is lost', async () => {
    const lost = {
      execute: async ({ executionId }: ExecutionRequest) => ({ executionId, runs: [{ ...CLEAN_RUN, exit: 'infra' as const }] }),
    };
    const error: unknown = await verify(skillOf('print(1)', [io('', '1')]), lost).catch((thrown: unknown) => thrown);
    expect(isRetryable(error)).toBe(true);
  });
});
