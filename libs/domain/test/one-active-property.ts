import type { Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { approveSkill, archiveSkill, restoreSkill, rollbackSkill, settleVerified } from '../src/skills/life/decisions.js';
import type { DecisionsProperty } from './decisions-property.js';
import { NEW_YEAR, SCOPE, skillOf } from './memory-records.js';
import { storeAt } from './skill-lives.js';

const NAME = 'sum_even';
const SETTINGS = { approvalMode: 'automatic', skillRegistrationConfidenceThreshold: 0.9 } as const;
const VERSIONS = 6;
const DECISION = fc.record({
  what: fc.constantFrom('approve', 'rollback', 'restore', 'settle', 'archive'),
  version: fc.integer({ min: 1, max: VERSIONS }),
  by: fc.nat(1),
});
type Decided = typeof DECISION extends fc.Arbitrary<infer T> ? T : never;

/** Whatever is decided about the versions of a skill: at most one of them is active behind it. */
export const ONE_IS_ACTIVE: DecisionsProperty<Decided> = {
  turns: fc.array(fc.array(DECISION, { minLength: 2, maxLength: 5 }), { minLength: 1, maxLength: 6 }),
  example: [[{ what: 'settle', version: VERSIONS, by: 0 }]],
  store: storeVersions,
  skillsIn: (registry) => registry.versions(SCOPE, NAME),
  decide,
  look: async (registry, turn) => {
    const active = await registry.versions(SCOPE, NAME, 'active');
    if (active.length > 1)
      throw new Error(`active at once: ${active.map(({ version }) => version).join(', ')}, by ${JSON.stringify(turn)}`);
    return active.length;
  },
};

/** Three that were in use, the last of them still; two that wait for review; one that verification has just found good. */
async function storeVersions(registry: ProceduralMemory): Promise<void> {
  const statuses = ['active', 'active', 'active', 'pending_review', 'pending_review', 'verified'] as const;
  for (const [i, status] of statuses.entries()) await storeAt(registry, skillOf({ code: `print('${i}')`, status }), { at: NEW_YEAR + i });
}

async function decide(registry: ProceduralMemory, { what, version }: Decided, versions: readonly Skill[], at: number): Promise<unknown> {
  const skill = versions.find((one) => one.version === version);
  if (skill === undefined) return null;
  const decision = { by: 'ann', reason: '', at };
  switch (what) {
    case 'approve':
      return approveSkill(registry, skill, { ...decision, digest: skill.digest });
    case 'rollback':
      return rollbackSkill(registry, skill, { ...decision, toVersion: version });
    case 'restore':
      return restoreSkill(registry, [skill], decision);
    case 'archive':
      return archiveSkill(registry, [skill], decision);
    default:
      return settleVerified(registry, skill, SETTINGS, at);
  }
}
