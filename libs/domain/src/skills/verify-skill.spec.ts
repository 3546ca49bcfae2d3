import { spawnSync } from 'node:child_process';
import { isRetryable } from '@etude/contracts/errors';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { ExecutionRequest, RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { describe, expect, it } from 'vitest';
import { candidateFromTests } from './skill-candidate.js';
import { verifySkill } from './verify-skill.js';

const ended: RunResult = { exit: 'ok', exitCode: 0, signal: null, stdout: '', stderr: '', stdoutCutBytes: 0, stderrCutBytes: 0, cpuMs: 1, wallMs: 1, memoryPeakKiB: 1 };

/** Runs trusted test code with the machine's Python. No isolation: it is here for the parser and the hash seeds. */
function pythonRun(run: SandboxRun, seed: number | undefined): RunResult {
  if (run.kind === 'command') throw new Error('no commands here');
  const code =
    run.kind === 'program' ? run.code
    : run.kind === 'call' ? `import json\n${run.code}\nprint(json.dumps(${run.entryPoint}(*json.loads(${JSON.stringify(JSON.stringify(run.args))}))))`
    : `${run.setup}${run.code}\n${run.tests}`;
  const { status, stdout, stderr } = spawnSync('/usr/bin/python3', ['-c', code], {
    input: run.kind === 'program' ? run.stdin : '',
    env: { PYTHONHASHSEED: String(seed ?? 0) },
    encoding: 'utf8',
    timeout: 10_000,
  });
  const result: RunResult = { ...ended, exit: status === 0 ? 'ok' : 'nonzero', exitCode: status, stdout, stderr };
  if (run.kind === 'call' && status === 0) return { ...result, stdout: '', value: JSON.parse(stdout) };
  return run.kind === 'checked' ? { ...result, passed: status === 0 } : result;
}

function python() {
  const asked: ExecutionRequest[] = [];
  const sandboxes = {
    async execute(request: ExecutionRequest) {
      asked.push(request);
      return { executionId: request.executionId, runs: request.runs.map((run) => pythonRun(run, request.hashSeed)) };
    },
  };
  return { asked, sandboxes };
}

function skillOf(code: string, tests: SkillTest[], entryPoint: string | null = null): Skill {
  const scope = { tenant: 'acme', agent: 'solver', user: null };
  const skill = candidateFromTests({ scope, prompt: 'Double it.', fingerprint: 'f', code, description: 'Doubles.', scenarios: [], model: 'm', scripted: true, at: 1, entryPoint, tests, sources: [] });
  if (skill === null) throw new Error('no candidate');
  return skill;
}
const io = (stdin: string, expectedStdout: string): SkillTest => ({ kind: 'io', stdin, expectedStdout, comparison: 'whitespace', tolerance: 0 });
const call = (args: number[], expected: number | null): SkillTest => ({ kind: 'call', args, kwargs: {}, expected, tolerance: 0 });
const verify = (skill: Skill, sandboxes = python().sandboxes) => verifySkill(skill, { sandboxes }, new AbortController().signal);

describe('verifySkill', () => {
  it('passes a program whose tests notice broken copies', async () => {
    const verification = await verify(skillOf('n = int(input())\nprint(n * 2)', [io('2', '4'), io('5', '10')]));
    expect(verification).toEqual({
      passed: true,
      reason: '',
      evidence: ['the code parses', 'its tests pass twice with the same results (2)', 'its tests fail on 4 of 4 copies broken on purpose'],
    });
  });

  it('passes functions and test code alike', async () => {
    const code = 'def double(n):\n    return n * 2';
    expect(await verify(skillOf(code, [call([2], 4), call([3], 6)], 'double'))).toMatchObject({ passed: true });
    expect(await verify(skillOf(code, [{ kind: 'python', setup: 'import math\n', tests: 'assert double(3) == 6' }], 'double'))).toMatchObject({ passed: true });
  });

  it('rejects code that does not parse, with the line', async () => {
    expect(await verify(skillOf('print(1\nx ==', [io('', '1')]))).toMatchObject({ passed: false, reason: expect.stringMatching(/^the code does not parse: SyntaxError: .*line 1$/) });
  });

  it('rejects code whose tests fail', async () => {
    expect(await verify(skillOf('print(3)', [io('2', '4')]))).toMatchObject({ passed: false, reason: 'its tests fail: hidden case 1 of 1: wrong answer', evidence: ['the code parses'] });
  });

  it('rejects tests that no broken copy fails', async () => {
    const idle = skillOf('def idle(n):\n    return None', [call([1], null)], 'idle');
    expect(await verify(idle)).toMatchObject({ passed: false, reason: 'its tests prove nothing: no broken copy could be made' });
    const weak = skillOf('def double(n):\n    return n * 2', [{ kind: 'python', setup: '', tests: 'assert callable(double)' }], 'double');
    expect(await verify(weak)).toMatchObject({ passed: false, reason: 'its tests prove nothing: they pass on every broken copy' });
  });

  it('rejects answers that change with the hash seed', async () => {
    const { sandboxes } = python();
    const seeded = {
      async execute(request: ExecutionRequest) {
        const answer = await sandboxes.execute(request);
        const runs = answer.runs.map((run) => (run.value === undefined ? run : { ...run, value: Number(run.value) + (request.hashSeed === 1 ? 0 : 1e-12) }));
        return { ...answer, runs };
      },
    };
    const skill = skillOf('def third(n):\n    return n / 3', [{ kind: 'call', args: [1], kwargs: {}, expected: 1 / 3, tolerance: 1e-6 }], 'third');
    expect(await verify(skill, seeded)).toMatchObject({ passed: false, reason: 'its tests give other results under another hash seed' });
  });

  it('holds a new version to the tests of the old one', async () => {
    const replaced = skillOf('print(int(input()) * 2)', [io('2', '4'), io('9', '18')]);
    const skill = { ...skillOf('n = int(input())\nprint(n + 2)', [io('2', '4')]), version: 2 };
    const verification = await verifySkill(skill, { ...python(), replaced }, new AbortController().signal);
    expect(verification.reason).toMatch(/^the tests of version 1, which it would replace, fail:/);
  });

  it('parses a snippet and never runs it', async () => {
    const { asked, sandboxes } = python();
    const snippet = skillOf('class double:\n    pass', [call([1], 2)], 'double');
    expect(await verify(snippet, sandboxes)).toMatchObject({ passed: true, evidence: ['the code parses', 'a snippet is shown, never run'] });
    expect(asked).toHaveLength(1);
  });

  it('asks for the same executions when repeated, others for another tenant or try', async () => {
    const { asked, sandboxes } = python();
    const skill = skillOf('print(int(input()) * 2)', [io('2', '4')]);
    const ids = async (tested: Skill, attempt: number) => {
      asked.length = 0;
      await verifySkill(tested, { sandboxes, attempt }, new AbortController().signal);
      return asked.map(({ executionId }) => executionId);
    };
    const once = await ids(skill, 1);
    expect(new Set(once).size).toBe(once.length);
    expect(await ids(skill, 1)).toEqual(once);
    expect(await ids(skill, 2)).not.toContain(once[0]);
    expect(await ids({ ...skill, scope: { ...skill.scope, tenant: 'other' } }, 1)).not.toContain(once[0]);
  });

  it('rejects nothing when a sandbox is lost', async () => {
    const lost = { execute: async ({ executionId }: ExecutionRequest) => ({ executionId, runs: [{ ...ended, exit: 'infra' as const }] }) };
    const error: unknown = await verify(skillOf('print(1)', [io('', '1')]), lost).catch((thrown: unknown) => thrown);
    expect(isRetryable(error)).toBe(true);
  });
});
