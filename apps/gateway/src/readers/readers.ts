import { EtudeError } from '@etude/contracts/errors';
import { SkillSchema, type SkillScope as ScopeMessage, SkillScopeSchema, SkillStatusSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { AgentId, GLOBAL_TENANT, skillResourceName, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillScope, SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { findSkill, ownerOf, ownersFor, scopeOf, type SkillReader, viewOf } from '@etude/domain/skills/life/find-skill';
import type { Owners } from '@etude/memory/record-store';
import { hasRole, type Role } from '@etude/platform/auth';
import { invalidField, parseField } from '@etude/contracts/wire/validation';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { UNUSED } from '@etude/domain/skills/life/usage';
import { toWire, wordOf } from '@etude/contracts/wire/messages';
import { requireOwnRecord } from '../calls/roles.js';
import type { CallContext } from '../calls/caller.js';
import { optionalAgent, optionalUser, skillOfName } from '../wire/names.js';

export interface AskedSkills {
  readonly tenant: string;
  /** An agent: its own and shared skills. "@user", "@tenant" or "@global": only those shared skills. null: skills of all agents. */
  readonly agent: string | null;
  readonly user: string | null;
  /** A reviewer who names no user sees the skills of all users. */
  readonly everyUser: boolean;
}

const NAMED_MAX = 10;
const SHARED: ReadonlySet<string> = new Set([USER_AGENT, TENANT_AGENT, GLOBAL_TENANT]);

/** @throws EtudeError INVALID_ARGUMENT */
export function askedSkills(call: CallContext, { agent, user }: Whose): AskedSkills {
  const { tenant, roles } = call;
  const known = optionalUser(user);
  const owner = agent === '' ? null : SHARED.has(agent) ? agent : parseField(AgentId, agent, 'agent');
  const everyUser = known === null && hasRole(roles, 'reviewer');
  if (owner === USER_AGENT && known === null && !everyUser) throw invalidField('user', 'is required for the owner "@user"');
  return { tenant, agent: owner, user: known, everyUser };
}

/** Whether the caller may see a skill of this owner. */
export const seesUsers = ({ user, everyUser }: AskedSkills, { scope }: Pick<Skill, 'scope'>) =>
  everyUser || scope.user === null || scope.user === user;

/** The scopes to read in order, narrowest first. */
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
 * The requested version, or the newest in any status. If several owners have a skill of this name, the narrowest owner's skill counts.
 *
 * @param name "skills/{skill}"
 * @throws EtudeError INVALID_ARGUMENT, NOT_FOUND; FAILED_PRECONDITION if a reviewer names no user, and several users have this skill
 */
export async function skillNamed(procedural: ProceduralMemory, asked: AskedSkills, name: string, version = 0): Promise<Skill> {
  const skillName = skillOfName(name);
  const wanted = version === 0 ? undefined : checkedVersion(version, 'version');
  const found = (await asReader(procedural, asked, skillName, wanted)) ?? (await firstOf(procedural, asked, skillName, wanted));
  if (found !== null) return found;
  const which = wanted === undefined ? name : `version ${wanted} of ${name}`;
  throw new EtudeError('NOT_FOUND', `There is no ${which} for this reader. The fields agent and user name the reader.`, {
    metadata: { name },
  });
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

/** Returns the found skill. @throws EtudeError FAILED_PRECONDITION if a user owns it, and other users have a skill of this name too */
async function oneUsers(procedural: ProceduralMemory, found: Skill, version?: number): Promise<Skill> {
  const { scope, name } = found;
  if (scope.user === null) return found;
  const versions = await procedural.versions({ tenant: scope.tenant, agent: scope.agent }, name);
  const meant = versions.filter((one) => version === undefined || one.version === version);
  const users = [...new Set(meant.flatMap((one) => one.scope.user ?? []))].toSorted();
  if (users.length <= 1) return found;
  const message = `Several users of "${scope.agent}" have the skill skills/${name}: ${someOf(users)}. Set the field user to one of them.`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'user', metadata: { name: `skills/${name}` } });
}

const someOf = (users: readonly string[]) => `${users.slice(0, NAMED_MAX).join(', ')}${users.length > NAMED_MAX ? ', …' : ''}`;

export function checkedVersion(version: number, field: string): number {
  if (version >= 1) return version;
  throw invalidField(field, `must be a version from 1, or 0, but is ${version}`);
}

/** The named version; else the newest with one of these statuses; else the newest. @throws EtudeError INVALID_ARGUMENT, NOT_FOUND */
export async function meantVersion(
  procedural: ProceduralMemory,
  asked: AskedSkills,
  { name, version = 0 }: { readonly name: string; readonly version?: number },
  statuses: readonly SkillStatus[],
): Promise<Skill> {
  const skill = await skillNamed(procedural, asked, name, version);
  if (version !== 0 || statuses.includes(skill.status)) return skill;
  const versions = await procedural.versions(skill.scope, skill.name);
  return versions.find(({ status }) => statuses.includes(status)) ?? skill;
}

/** Whether the caller may read tests made from tasks, which may contain hidden cases. For skills of all tenants, only operators may. */
export function readsHiddenTests(roles: readonly Role[], { scope }: Pick<Skill, 'scope'>): boolean {
  return hasRole(roles, scope.tenant === GLOBAL_TENANT ? 'operator' : 'reviewer');
}

/** Skills of all tenants are changed by operators only. @throws EtudeError PERMISSION_DENIED */
export function requireOwner(call: CallContext, { scope }: Pick<Skill, 'scope'>): void {
  if (scope.tenant === GLOBAL_TENANT && !hasRole(call.roles, 'operator'))
    throw new EtudeError('PERMISSION_DENIED', 'Changing a skill of all tenants needs a key with the role "operator".');
}

export interface Whose {
  readonly agent: string;
  readonly user: string;
}

/** The scope to read: the tenant of the key, narrowed by the request and by the end user that the caller is bound to. */
export function readScope(call: CallContext, { agent, user }: Partial<Whose> = {}): ReadScope {
  return { tenant: call.tenant, agent: optionalAgent(agent ?? ''), user: optionalUser(user || (call.user ?? '')) };
}

/** The owner of a new record. @throws EtudeError INVALID_ARGUMENT without an agent */
export function ownScope(call: CallContext, { agent, user }: Whose): Scope {
  return { tenant: call.tenant, agent: parseField(AgentId, agent, 'agent'), user: optionalUser(user) };
}

/** The owners whose records are meant; an empty name means any. */
export function ownersOf(call: CallContext, { agent, user }: Whose): Owners {
  const named = Object.entries({ agent: optionalAgent(agent), user: optionalUser(user) });
  return { tenant: call.tenant, ...Object.fromEntries(named.filter(([, name]) => name !== null)) };
}

export interface Author {
  readonly reader: SkillReader;
  readonly scope: Scope;
}

/** Sharing a skill with a tenant needs a reviewer, and with all tenants an operator. */
const ROLE_OF: Readonly<Partial<Record<SkillScope, Role>>> = { tenant: 'reviewer', global: 'operator' };

/** @param field the request field that contains `asked` @throws EtudeError INVALID_ARGUMENT, PERMISSION_DENIED */
export function authorOf(
  call: CallContext,
  asked: { readonly scope: ScopeMessage; readonly agent: string; readonly user: string },
  field: string,
): Author {
  const { tenant, roles } = call;
  const scope = scopeNamed(asked.scope, `${field}.scope`) ?? 'agent';
  const role = ROLE_OF[scope];
  if (role !== undefined && !hasRole(roles, role)) {
    const message = `Registering a skill of scope ${scope} needs a key with the role "${role}". Or register it for an agent or a user, and ask a reviewer to promote it.`;
    throw new EtudeError('PERMISSION_DENIED', message);
  }
  const user = optionalUser(asked.user, `${field}.user`);
  if (scope === 'user' && user === null) throw invalidField(`${field}.user`, 'is required for the scope of a user');
  const agent = asked.agent === '' && scope !== 'agent' ? TENANT_AGENT : parseField(AgentId, asked.agent, `${field}.agent`);
  const reader = { tenant, agent, user };
  return { reader, scope: ownerOf(scope, reader) };
}

/** Only callers who could register a skill for these readers may change it. @throws EtudeError PERMISSION_DENIED */
export function requireAuthor(call: CallContext, skill: Pick<Skill, 'name' | 'scope'>): void {
  requireOwnRecord(call, skill.scope);
  const role = ROLE_OF[scopeOf(skill)];
  if (role === undefined || hasRole(call.roles, role)) return;
  throw new EtudeError('PERMISSION_DENIED', `Several agents use ${skill.name}. Changing it needs a key with the role "${role}".`);
}

type SkillInit = MessageInitShape<typeof SkillSchema>;

/** undefined: any status. @throws EtudeError INVALID_ARGUMENT */
export const statusFilterOf = (status: number) => wordOf(SkillStatusSchema, status, 'status') as SkillStatus | undefined;

/** undefined: unspecified. @throws EtudeError INVALID_ARGUMENT */
export const scopeNamed = (scope: number, field: string) => wordOf(SkillScopeSchema, scope, field) as SkillScope | undefined;

/** The owner's name in requests and answers: the agent, or "@user", "@tenant", "@global" for a shared skill. */
export const ownerName = ({ tenant, agent }: Pick<Scope, 'tenant' | 'agent'>) => (tenant === GLOBAL_TENANT ? GLOBAL_TENANT : agent);

export const named = <T extends { readonly name: string }>(skills: readonly T[] = []) =>
  skills.map((skill) => ({ ...skill, name: skillResourceName(skill.name) }));

/** Only the fields that reveal a change of the skill. */
export const briefMessage = ({ name, scope, version, status, digest }: Skill): SkillInit =>
  toWire(SkillSchema, { name: skillResourceName(name), agent: ownerName(scope), user: scope.user, version, status, digest });

/** A skill as callers see it. It has no tests, because these may contain hidden cases. Reviews show all tests except held-out tests. */
export function skillMessage(skill: Skill): SkillInit {
  const { scope, contract, proof, replacedBy, usage = UNUSED } = skill;
  return toWire(SkillSchema, {
    ...skill,
    ...usage,
    ...contract,
    name: skillResourceName(skill.name),
    agent: ownerName(scope),
    user: scope.user,
    scope: scopeOf(skill),
    parameters: contract?.parameters ?? skill.parameters,
    files: skill.files?.map(({ path }) => path),
    dependencies: named(skill.dependencies),
    proof: proof && { ...proof, kept: named(proof.kept), alike: named(proof.alike) },
    replacedBy: replacedBy && skillResourceName(replacedBy),
    testCount: skill.tests.length,
    offeredCount: usage.offered,
    usedCount: usage.used,
    fellBackCount: usage.fellBack,
  });
}
