import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentId, SkillName, TenantId, UserId } from './ids.js';
import { SkillVerify } from './queues.js';

const named = (name: { safeParse: (value: string) => { success: boolean } }) =>
  fc.stringMatching(/^[a-z0-9._-]{1,4}$/).filter((value) => name.safeParse(value).success);
const SKILL = fc.record(
  {
    v: fc.constant(1 as const),
    tenant: named(TenantId),
    agent: named(AgentId),
    name: named(SkillName),
    version: fc.integer({ min: 1, max: 12 }),
    digest: fc.constantFrom('a'.repeat(64), 'b'.repeat(64)),
    round: fc.integer({ min: 1, max: 2 }),
    user: named(UserId),
  },
  { requiredKeys: ['v', 'tenant', 'agent', 'name', 'version', 'digest'] },
);

describe('job ids of skills', () => {
  it('are equal only for the same skill version', () => {
    fc.assert(
      fc.property(SKILL, SKILL, (a, b) => {
        expect(SkillVerify.jobId(a) === SkillVerify.jobId(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });
});
