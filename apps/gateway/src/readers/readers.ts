import { EtudeError } from '@etude/contracts/errors';
import type { SkillScope as ScopeMessage } from '@etude/contracts/gen/etude/v1/skills_pb';
import { AgentId, GLOBAL_TENANT, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillScope, SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { findSkill, ownerOf, ownersFor, scopeOf, type SkillReader, viewOf } from '@etude/domain/skills/life/find-skill';
import type { Owners } from '@etude/memory/record-store';
import { hasRole, type Role } from '@etude/platform/auth';
import type { CallContext } from '../calls/caller.js';
import { optionalAgent, optionalUser, skillOfName } from '../wire/names.js';
import { invalidField, parseField } from '../wire/validation.js';
import { scopeNamed } from './skill-message.js';

/** Whose skills are asked for. */
export interface AskedSkills {
  readonly tenant: string;
  /** An agent's and what is shared with it; exactly what is shared, for "@user", "@tenant" and "@global"; null: every agent's. */
  readonly agent: string | null;
  readonly user: string | null;
  /** A reviewer who names no user sees those of every user. */
  readonly everyUser: boolean;
}

interface Asking {
  readonly agent: string;
  readonly user: string;
}

/** Users that a message names. */
const NAMED_MAX = 10;
const SHARED: ReadonlySet<string> = new Set([USER_AGENT, TENANT_AGENT, GLOBAL_TENANT]);

/** @throws EtudeError INVALID_ARGUMENT */
export function askedSkills(call: CallContext, { agent, user }: Asking): AskedSkills {
  const { tenant, roles } = call;
  const known = optionalUser(user);
  const owner = agent === '' ? null : SHARED.has(agent) ? agent : parseField(AgentId, agent, 'agent');
  const everyUser = known === null && hasRole(roles, 'reviewer');
  if (owner === USER_AGENT && known === null && !everyUser)
    throw invalidField('user', 'is required: "@user" is who shares with their agents');
  return { tenant, agent: owner, user: known, everyUser };
}

/** Whether a user's skill may be named to who asks. */
export const seesUsers = ({ user, everyUser }: AskedSkills, { scope }: Pick<Skill, 'scope'>) =>
  everyUser || scope.user === null || scope.user === user;

/** What is read one after the other, narrowest first. */
export function viewsOf({ tenant, agent, user, everyUser }: AskedSkills): readonly ReadScope[] {
  const seen = (owner: Pick<Scope, 'tenant' | 'agent'>): ReadScope => (everyUser ? { ...owner, user: null } : viewOf(owner, user));
  const global = seen({ tenant: GLOBAL_TENANT, agent: TENANT_AGENT });
  if (agent === null) return [{ ...seen({ tenant, agent: '' }), agent: null }, global];
  if (agent === GLOBAL_TENANT) return [global];
  if (SHARED.has(agent)) return [seen({ tenant, agent })];
  const owners = ownersFor({ tenant, agent, user: user ?? (everyUser ? 'any' : null) });
  return [...new Map(owners.map((owner) => [`${owner.tenant} ${owner.agent}`, seen(owner)])).values()];
}

/**
 * The newest version, whatever its status, or the one asked for; of equal names the narrowest owner's.
 *
 * @param name "skills/{skill}"
 * @throws EtudeError INVALID_ARGUMENT, NOT_FOUND; FAILED_PRECONDITION where a reviewer names no user, and several have one
 */
export async function skillNamed(procedural: ProceduralMemory, asked: AskedSkills, name: string, version = 0): Promise<Skill> {
  const skillName = skillOfName(name);
  const wanted = version === 0 ? undefined : checkedVersion(version, 'version');
  const found = (await asReader(procedural, asked, skillName, wanted)) ?? (await firstOf(procedural, asked, skillName, wanted));
  if (found !== null) return found;
  const which = wanted === undefined ? name : `version ${wanted} of ${name}`;
  throw new EtudeError('NOT_FOUND', `There is no ${which} for this reader. Who reads is told by agent and user.`, { metadata: { name } });
}

async function asReader(procedural: ProceduralMemory, { tenant, agent, user }: AskedSkills, name: string, version?: number) {
  if (agent === null || SHARED.has(agent)) return null;
  return findSkill(procedural, { tenant, agent, user }, name, version === undefined ? { status: 'any' } : { version });
}

async function firstOf(procedural: ProceduralMemory, asked: AskedSkills, name: string, version?: number): Promise<Skill | null> {
  for (const view of viewsOf(asked)) {
    const skill = await procedural.get(view, name, version);
    if (skill !== null) return asked.everyUser ? oneUsers(procedural, skill, version) : skill;
  }
  return null;
}

/** Nobody's in particular, else that of the only user who has one. @throws EtudeError FAILED_PRECONDITION where several users have one */
async function oneUsers(procedural: ProceduralMemory, found: Skill, version?: number): Promise<Skill> {
  const { scope, name } = found;
  if (scope.user === null) return found;
  const versions = await procedural.versions({ tenant: scope.tenant, agent: scope.agent }, name);
  const meant = versions.filter((one) => version === undefined || one.version === version);
  const users = [...new Set(meant.flatMap((one) => one.scope.user ?? []))].toSorted();
  if (users.length <= 1) return found;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `Several users of "${scope.agent}" have a skills/${name}: ${someOf(users)}. Name the user whose it is.`,
    { field: 'user', metadata: { name: `skills/${name}` } },
  );
}

const someOf = (users: readonly string[]) => `${users.slice(0, NAMED_MAX).join(', ')}${users.length > NAMED_MAX ? ', …' : ''}`;

export function checkedVersion(version: number, field: string): number {
  if (version >= 1) return version;
  throw invalidField(field, `must be a version, from 1, or 0; it is ${version}`);
}

/**
 * The version that is meant: the one that is named, else the newest of those in such a status, else the newest.
 *
 * @throws EtudeError INVALID_ARGUMENT, NOT_FOUND
 */
export async function meantVersion(
  procedural: ProceduralMemory,
  asked: AskedSkills,
  { name, version }: { readonly name: string; readonly version: number },
  statuses: readonly SkillStatus[],
): Promise<Skill> {
  const skill = await skillNamed(procedural, asked, name, version);
  if (version !== 0 || statuses.includes(skill.status)) return skill;
  const versions = await procedural.versions(skill.scope, skill.name);
  return versions.find(({ status }) => statuses.includes(status)) ?? skill;
}

/** Whether tests that were made from tasks' cases, some of which are hidden, may be read: of what everybody reads only by operators. */
export function readsHiddenTests(roles: readonly Role[], { scope }: Pick<Skill, 'scope'>): boolean {
  return hasRole(roles, scope.tenant === GLOBAL_TENANT ? 'operator' : 'reviewer');
}

/** What everybody reads is changed by operators only. @throws EtudeError PERMISSION_DENIED */
export function requireOwner(call: CallContext, { scope }: Pick<Skill, 'scope'>): void {
  if (scope.tenant === GLOBAL_TENANT && !hasRole(call.roles, 'operator'))
    throw new EtudeError('PERMISSION_DENIED', 'Skills of all tenants are changed with a key that has the role "operator".');
}

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
