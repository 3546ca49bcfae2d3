import { EtudeError } from '@etude/contracts/errors';
import { AgentId, GLOBAL_TENANT, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { findSkill, ownersFor, type SkillReader, viewOf } from '@etude/domain/skills/life/find-skill';
import { hasRole, type Role } from '@etude/platform/auth';
import type { CallContext } from '../calls/caller.js';
import { optionalUser, skillOfName } from '../wire/names.js';
import { invalidField, parseField } from '../wire/validation.js';

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
  const users = usersOf(versions.filter((one) => version === undefined || one.version === version));
  if (users.length <= 1) return found;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `Several users of "${scope.agent}" have a skills/${name}: ${someOf(users)}. Name the user whose it is.`,
    { field: 'user', metadata: { name: `skills/${name}` } },
  );
}

const usersOf = (skills: readonly Skill[]) => [...new Set(skills.flatMap(({ scope }) => scope.user ?? []))].toSorted();
const someOf = (users: readonly string[]) => `${users.slice(0, NAMED_MAX).join(', ')}${users.length > NAMED_MAX ? ', …' : ''}`;

/** Users for whom an agent has an active skill of that name, in words; '' for none. Only a reviewer may be told of them. */
export async function usersWith(procedural: ProceduralMemory, { tenant, agent }: SkillReader, name: string): Promise<string> {
  const found = await Promise.all([agent, USER_AGENT].map((owner) => procedural.versions({ tenant, agent: owner }, name, 'active')));
  return someOf(usersOf(found.flat()));
}

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
