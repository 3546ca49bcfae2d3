import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillScope } from '@etude/contracts/skill-proof';
import type { ReadScope } from '../../ports/memory.js';

/** Who reads skills; the tenant comes from authentication. */
export interface SkillReader {
  readonly tenant: string;
  readonly agent: string;
  /** null: nobody in particular, who sees nothing of any user. */
  readonly user: string | null;
}

/** No user has this name, so that who reads as it sees only what is nobody's in particular. */
const NOBODY = '@nobody';

/** Whose skills somebody reads, exactly; narrowest first. */
export function ownersFor({ tenant, agent, user }: SkillReader): readonly Scope[] {
  const own = { tenant, agent, user: null };
  const shared = [
    { tenant, agent: TENANT_AGENT, user: null },
    { tenant: GLOBAL_TENANT, agent: TENANT_AGENT, user: null },
  ];
  return user === null ? [own, ...shared] : [{ ...own, user }, own, { tenant, agent: USER_AGENT, user }, ...shared];
}

/** What of one tenant and agent somebody sees: what is their own and what is nobody's. */
export function viewOf({ tenant, agent }: Pick<Scope, 'tenant' | 'agent'>, user: string | null): ReadScope {
  return { tenant, agent, user: user ?? NOBODY };
}

/** Under whose name a skill for these readers is kept. @throws EtudeError INVALID_ARGUMENT for a user's where no user is named */
export function ownerOf(scope: SkillScope, { tenant, agent, user }: SkillReader): Scope {
  switch (scope) {
    case 'agent':
      return { tenant, agent, user };
    case 'user':
      if (user === null) throw new EtudeError('INVALID_ARGUMENT', 'a skill of scope "user" needs a user; name one', { field: 'user' });
      return { tenant, agent: USER_AGENT, user };
    case 'tenant':
      return { tenant, agent: TENANT_AGENT, user: null };
    case 'global':
      return { tenant: GLOBAL_TENANT, agent: TENANT_AGENT, user: null };
    default:
      throw new EtudeError('INVALID_ARGUMENT', `there is no scope ${JSON.stringify(scope)}; take agent, user, tenant or global`, {
        field: 'scope',
      });
  }
}

export function scopeOf({ scope: { tenant, agent } }: Pick<Skill, 'scope'>): SkillScope {
  if (tenant === GLOBAL_TENANT) return 'global';
  if (agent === TENANT_AGENT) return 'tenant';
  return agent === USER_AGENT ? 'user' : 'agent';
}

export function isReadBy(owner: Scope, reader: SkillReader): boolean {
  return ownersFor(reader).some(({ tenant, agent, user }) => owner.tenant === tenant && owner.agent === agent && owner.user === user);
}
