import type { Scope, Skill } from '@etude/contracts/memory';
import { describe, expect, it } from 'vitest';
import { FakeProceduralMemory } from '../../../test/fake-procedural-memory.js';
import { keyOf } from '../life/skill-life.js';
import { skillOf, proven } from '../../../test/bundle-fixture.js';
import { admissionDeps } from '../../../test/admission-fixture.js';
import { admitSkill } from './admit-skill.js';

const signal = new AbortController().signal;
const OWN: Scope = { tenant: 'acme', agent: 'solver', user: null };
const ANNS: Scope = { ...OWN, user: 'ann' };
const TENANT: Scope = { ...OWN, agent: '@tenant' };
const GLOBAL: Scope = { ...TENANT, tenant: '@global' };

const test = (arg: number, expected: number) => ({ kind: 'call' as const, args: [arg], kwargs: {}, expected, tolerance: 0 });

/** The new version differs below zero. Only the tests of its caller notice the difference. */
function lives(scope: Scope, caller: Scope) {
  const step = proven(skillOf('step', 'def step(n):\n    return n + 1', { scope, tests: [test(1, 2), test(5, 6)] }));
  const code = 'def step(n):\n    return 1 + abs(n)';
  const next = skillOf('step', code, { scope, version: 2, status: 'candidate', tests: [test(1, 2), test(7, 8)] });
  const secret = skillOf('secret_project', 'from skills import step\ndef secret_project(n):\n    return step(n)', {
    scope: caller,
    tests: [test(-3, -2)],
    needs: [step],
  });
  return { step, next, secret: proven(secret) };
}

async function admitted(scope: Scope, caller: Scope) {
  const { step, next, secret } = lives(scope, caller);
  const procedural = new FakeProceduralMemory().keep(step, secret, next);
  const requested: Skill[] = [];
  const deps = admissionDeps(procedural, {}, requested);
  const skill = await admitSkill(keyOf(next), deps, signal);
  for (const one of requested) await admitSkill(keyOf(one), deps, signal);
  return { skill, callers: (await procedural.versions(caller, 'secret_project')).toReversed() };
}

describe('the verification of a skill', () => {
  it.each([
    ['another tenant', GLOBAL, OWN],
    ['one agent', TENANT, OWN],
    ['one user', OWN, ANNS],
  ])('ignores callers of %s that some readers do not see', async (_whose, scope, caller) => {
    const { skill, callers } = await admitted(scope, caller);
    expect(skill).toMatchObject({ status: 'active', proof: { kept: [{ name: 'step', version: 1 }] } });
    expect(JSON.stringify(skill)).not.toContain('secret_project');
    expect(callers.map(({ status }) => status)).toEqual(['active', 'rejected']);
    expect(callers[0]?.dependencies).toMatchObject([{ name: 'step', version: 1 }]);
  });

  it.each([
    ['everybody', GLOBAL, GLOBAL],
    ['the tenant', TENANT, TENANT],
    ['the same user', ANNS, OWN],
  ])('fails on the tests of a caller that %s reads too', async (_whose, scope, caller) => {
    const { skill } = await admitted(scope, caller);
    expect(skill).toMatchObject({ status: 'rejected', statusReason: expect.stringContaining('secret_project@1') as string });
  });
});
