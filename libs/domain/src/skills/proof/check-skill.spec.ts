import type { Skill } from '@etude/contracts/memory';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { admitSkill } from './admit-skill.js';
import { PythonSandboxes } from '../../../test/python-sandboxes.js';
import { admissionDeps, candidate, io, scope } from '../../../test/admission-fixture.js';
import { checkSkill, examineSkill } from './admit-skill.js';
import { registerSkill } from '../life/register-skill.js';
import { keyOf } from '../life/skill-life.js';

const signal = new AbortController().signal;

/** The ids of the executions of a check. */
async function ids(check: typeof checkSkill): Promise<readonly string[]> {
  const sandboxes = new PythonSandboxes();
  await check(candidate(), { ...admissionDeps(new FakeProceduralMemory()), sandboxes }, signal);
  return sandboxes.requests.map(({ executionId }) => executionId);
}

/** The result of verifying the same draft after its registration. */
async function registeredReason(given: Skill, procedural: FakeProceduralMemory) {
  const registration = { procedural, settings: ProceduralMemorySettings.parse({ enabled: true }), clock: { now: () => 2 } };
  const stored = await registerSkill(given, { by: 'ann' }, registration);
  return (await admitSkill(keyOf(stored), admissionDeps(procedural), signal)).statusReason;
}

it('returns the findings of verification and stores nothing', async () => {
  const procedural = new FakeProceduralMemory();
  const deps = admissionDeps(procedural);
  expect(await checkSkill(candidate(), deps, signal)).toMatchObject({
    passed: true,
    digest: candidate().digest,
    confidence: 0.375,
    found: { testsPassed: 1 },
  });
  expect(await checkSkill(candidate({ code: 'print(5)' }), deps, signal)).toMatchObject({ passed: false, confidence: 0 });
  expect(await procedural.versions(scope, candidate().name)).toEqual([]);
});

describe('checkSkill of an existing name', () => {
  const ONE = candidate({ status: 'active', digest: 'a'.repeat(64) });
  const OTHER = { ...io, stdin: '3', expectedStdout: '7' };
  const draft = candidate({ code: 'print(int(input()) * 2 + 1)', tests: [OTHER] });

  it('runs the tests of the version that a draft would replace', async () => {
    const procedural = new FakeProceduralMemory().keep(ONE);
    const check = await checkSkill(draft, admissionDeps(procedural), signal);
    expect(check).toMatchObject({ passed: false, confidence: 0 });
    expect(check.reason).toContain('the tests of version 1, which it would replace, fail');
    expect(await registeredReason(draft, procedural)).toBe(check.reason);
    const kept = await checkSkill(candidate({ code: 'print(2 * int(input()))' }), admissionDeps(procedural), signal);
    expect(kept).toMatchObject({ passed: true, reason: '' });
    expect(kept.evidence).toContain('the tests of version 1 pass');
  });

  it('runs held-out tests of the newest version without showing them', async () => {
    const secret = { ...io, stdin: '40', expectedStdout: '80' };
    const rejected = { ...ONE, version: 2, status: 'rejected' as const, digest: 'b'.repeat(64), heldOut: [secret] };
    const special = candidate({ code: 'print({2: 4}.get(int(input()), 5))' });
    const procedural = new FakeProceduralMemory().keep(ONE, rejected);
    const check = await checkSkill(special, admissionDeps(procedural), signal);
    expect(check.reason).toMatch(/^its held-out tests fail: /);
    expect(JSON.stringify([check.reason, check.evidence])).not.toMatch(/40|80/);
    expect(await registeredReason(special, procedural)).toBe(check.reason);
  });

  it('shares no execution with the later verification', async () => {
    const verification = new Set(await ids(examineSkill));
    expect((await ids(checkSkill)).filter((id) => verification.has(id))).toEqual([]);
  });
});
