import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { MemoryWrite, Scope, Skill } from '@etude/contracts/memory';
import type { SkillUsage } from '@etude/contracts/skill-proof';

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

/**
 * Whose skill was used, the likeliest first: where the use names no user it is nobody's, or was stored before versions were counted for each
 * user and is the user's own.
 *
 * @throws EtudeError PERMISSION_DENIED for one of another tenant that is not everybody's
 */
export function ownersOfUse({ scope, owner }: Extract<MemoryWrite, { kind: 'skill_use' }>): readonly Scope[] {
  const { tenant, agent } = owner ?? scope;
  if (tenant !== scope.tenant && tenant !== GLOBAL_TENANT)
    throw new EtudeError('PERMISSION_DENIED', `tenant "${scope.tenant}" can't have used a skill of tenant "${tenant}"`);
  const users = owner?.user === undefined ? [...new Set([null, scope.user])] : [owner.user];
  return users.map((user) => ({ tenant, agent, user }));
}
