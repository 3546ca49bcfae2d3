import { EtudeError } from '@etude/contracts/errors';
import type { SkillScope as ScopeMessage } from '@etude/contracts/gen/etude/v1/skills_pb';
import { AgentId, TENANT_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillScope } from '@etude/contracts/skill-proof';
import type { ReadScope } from '@etude/domain/ports/memory';
import { ownerOf, scopeOf, type SkillReader } from '@etude/domain/skills/life/find-skill';
import type { Owners } from '@etude/memory/record-store';
import { hasRole, type Role } from '@etude/platform/auth';
import type { CallContext } from '../calls/caller.js';
import { optionalAgent, optionalUser } from '../wire/names.js';
import { invalidField, parseField } from '../wire/validation.js';
import { scopeNamed } from './skill-message.js';

export interface Whose {
  readonly agent: string;
  readonly user: string;
}

/** What a reader sees: the tenant of the key, narrowed as the request says. */
export function readScope(call: CallContext, { agent, user }: Partial<Whose> = {}): ReadScope {
  return { tenant: call.tenant, agent: optionalAgent(agent ?? ''), user: optionalUser(user ?? '') };
}

/** Whose a new record is. @throws EtudeError INVALID_ARGUMENT without an agent */
export function ownScope(call: CallContext, { agent, user }: Whose): Scope {
  return { tenant: call.tenant, agent: parseField(AgentId, agent, 'agent'), user: optionalUser(user) };
}

/** Exactly these owners' records; empty is any. */
export function ownersOf(call: CallContext, { agent, user }: Whose): Owners {
  const named = Object.entries({ agent: optionalAgent(agent), user: optionalUser(user) });
  return { tenant: call.tenant, ...Object.fromEntries(named.filter(([, name]) => name !== null)) };
}

export interface Author {
  readonly reader: SkillReader;
  /** Whose the skill will be. */
  readonly scope: Scope;
}

/** Who may read more than an agent's or a user's skill is said by a reviewer, and of every tenant's by an operator. */
const ROLE_OF: Readonly<Partial<Record<SkillScope, Role>>> = { tenant: 'reviewer', global: 'operator' };

/**
 * @param field of the request that these are in
 * @throws EtudeError INVALID_ARGUMENT, PERMISSION_DENIED
 */
export function authorOf(
  call: CallContext,
  asked: { readonly scope: ScopeMessage; readonly agent: string; readonly user: string },
  field: string,
): Author {
  const { tenant, roles } = call;
  const scope = scopeNamed(asked.scope, `${field}.scope`) ?? 'agent';
  const role = ROLE_OF[scope];
  if (role !== undefined && !hasRole(roles, role))
    throw new EtudeError(
      'PERMISSION_DENIED',
      `A skill of scope ${scope} is registered with a key that has the role "${role}"; register it for an agent or a user, and have it promoted.`,
    );
  const user = optionalUser(asked.user, `${field}.user`);
  if (scope === 'user' && user === null) throw invalidField(`${field}.user`, 'is required for the scope of a user');
  const agent = asked.agent === '' && scope !== 'agent' ? TENANT_AGENT : parseField(AgentId, asked.agent, `${field}.agent`);
  const reader = { tenant, agent, user };
  return { reader, scope: ownerOf(scope, reader) };
}

/** What becomes of a skill is for those who may register one for the same readers. @throws EtudeError PERMISSION_DENIED */
export function requireAuthor(call: CallContext, skill: Pick<Skill, 'name' | 'scope'>): void {
  const role = ROLE_OF[scopeOf(skill)];
  if (role === undefined || hasRole(call.roles, role)) return;
  throw new EtudeError('PERMISSION_DENIED', `${skill.name} is used by more than one agent; a key with the role "${role}" may do this.`);
}
