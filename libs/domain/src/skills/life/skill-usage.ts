import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { MemoryWrite, Skill } from '@etude/contracts/memory';
import type { SkillUsage } from '@etude/contracts/skill-proof';
import type { SkillOwner } from '../../ports/skill-registry.js';

export const UNUSED: SkillUsage = {
  offered: 0,
  used: 0,
  fellBack: 0,
  lastUsedAt: null,
  failures: [],
  outputs: [],
  nondeterministic: false,
};

/** A skill that was shown to a model or an agent once more. */
export function afterOffer(skill: Skill): Skill {
  const usage = skill.usage ?? UNUSED;
  return { ...skill, usage: { ...usage, offered: usage.offered + 1 } };
}

/** Whose skill was used. @throws EtudeError PERMISSION_DENIED for one of another tenant that is not everybody's */
export function ownerOfUse({ scope, owner = scope }: Extract<MemoryWrite, { kind: 'skill_use' }>): SkillOwner {
  if (owner.tenant === scope.tenant || owner.tenant === GLOBAL_TENANT) return { tenant: owner.tenant, agent: owner.agent };
  throw new EtudeError('PERMISSION_DENIED', `tenant "${scope.tenant}" can't have used a skill of tenant "${owner.tenant}"`);
}
