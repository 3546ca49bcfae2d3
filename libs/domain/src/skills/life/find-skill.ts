import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT, TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillScope, SkillStatus } from '@etude/contracts/skill-proof';
import { isSameOwner } from './skill-life.js';
import type { FoundSkill, ProceduralMemory, ReadScope, SearchQuery, SkillKey, SkillVersions } from '../../ports/memory.js';

/** Who reads skills. The tenant comes from authentication. A reader without a user sees no skills of users. */
export type SkillReader = Scope;

/** A name that no user has. A reader with this name sees only skills without a user. */
const NOBODY = '@nobody';

/** The owners whose skills a reader sees, narrowest first. */
export function ownersFor({ tenant, agent, user }: SkillReader): readonly Scope[] {
  const own = { tenant, agent, user: null };
  const shared = [
    { tenant, agent: TENANT_AGENT, user: null },
    { tenant: GLOBAL_TENANT, agent: TENANT_AGENT, user: null },
  ];
  return user === null ? [own, ...shared] : [{ ...own, user }, own, { tenant, agent: USER_AGENT, user }, ...shared];
}

/** The records of one tenant and agent that a user sees: the user's own records, and records without a user. */
export function viewOf({ tenant, agent }: Pick<Scope, 'tenant' | 'agent'>, user: string | null): ReadScope {
  return { tenant, agent, user: user ?? NOBODY };
}

/** The owner of a reader's skills of this scope. @throws EtudeError INVALID_ARGUMENT for the scope "user" without a user */
export function ownerOf(scope: SkillScope, { tenant, agent, user }: SkillReader): Scope {
  switch (scope) {
    case 'agent':
      return { tenant, agent, user };
    case 'user':
      if (user === null) throw new EtudeError('INVALID_ARGUMENT', 'a skill of scope "user" needs a user; name one', { field: 'user' });
      return { tenant, agent: USER_AGENT, user };
    case 'tenant':
      return { tenant, agent: TENANT_AGENT, user: null };
    default:
      return { tenant: GLOBAL_TENANT, agent: TENANT_AGENT, user: null };
  }
}

export function scopeOf({ scope: { tenant, agent } }: Pick<Skill, 'scope'>): SkillScope {
  if (tenant === GLOBAL_TENANT) return 'global';
  if (agent === TENANT_AGENT) return 'tenant';
  return agent === USER_AGENT ? 'user' : 'agent';
}

export function isReadBy(owner: Scope, reader: SkillReader): boolean {
  return ownersFor(reader).some((one) => isSameOwner(one, owner));
}

interface FindOptions {
  /** The number of the version to find, in any status unless `status` is given. */
  readonly version?: number;
  /** Finds the newest version with this status. Default: the active version, or else the active replacement of a deprecated version. */
  readonly status?: SkillStatus | 'any';
}

export interface SkillSearch extends SearchQuery {
  /** Tags that a found skill must all have. */
  readonly tags?: readonly string[];
}

/** A search asks for this many times its limit, because skills of equal names or with other tags are removed afterwards. */
const PER_HIT = 2;
const PER_TAGGED_HIT = 10;

/** Finds a skill of the narrowest owner that the reader sees. A deprecated name leads to its replacement. @throws EtudeError MEMORY_UNAVAILABLE */
export async function findSkill(
  procedural: SkillVersions,
  reader: SkillReader,
  name: string,
  { version, status }: FindOptions = {},
): Promise<Skill | null> {
  if (version !== undefined || status !== undefined) {
    const found = await versionsSeen(procedural, reader, name, status === 'any' ? undefined : status);
    return found.flat().find((skill) => version === undefined || skill.version === version) ?? null;
  }
  const seen = new Set<string>();
  for (let wanted = name; !seen.has(wanted);) {
    seen.add(wanted);
    const found = await findInUse(procedural, reader, wanted);
    if (found === null || found.status === 'active') return found;
    wanted = found.replacedBy ?? wanted;
  }
  return null;
}

/** The best matches among all skills that a reader sees, best first. If skills have the same name, the first owner in `ownersFor` counts. */
export async function searchSkills(
  procedural: Pick<ProceduralMemory, 'search'>,
  reader: SkillReader,
  { tags = [], limit, ...query }: SkillSearch,
): Promise<readonly FoundSkill[]> {
  const owners = Map.groupBy(ownersFor(reader), ({ tenant }) => tenant);
  const asked = { ...query, limit: limit * (tags.length === 0 ? PER_HIT : PER_TAGGED_HIT) };
  const searches = [...owners].map(([tenant, ofTenant]) => {
    const [agent = '', ...also] = new Set(ofTenant.map((owner) => owner.agent));
    return procedural.search({ ...viewOf({ tenant, agent }, reader.user), also }, asked);
  });
  const found = await Promise.all(searches);
  const placeOf = ({ skill }: FoundSkill) => ownersFor(reader).findIndex((owner) => isSameOwner(owner, skill.scope));
  const seen = found.flat().filter((hit) => placeOf(hit) >= 0);
  const best = seen.toSorted((a, b) => b.score - a.score || b.similarity - a.similarity);
  const ofOneName = [...Map.groupBy(best, ({ skill }) => skill.name).values()];
  const narrowest = new Set(ofOneName.map((hits) => hits.toSorted((a, b) => placeOf(a) - placeOf(b))[0]));
  return best.filter((hit) => narrowest.has(hit) && tags.every((tag) => hit.skill.tags.includes(tag))).slice(0, limit);
}

function versionsSeen(procedural: SkillVersions, reader: SkillReader, name: string, status?: SkillStatus) {
  return Promise.all(ownersFor(reader).map((owner) => procedural.versions(owner, name, status)));
}

async function findInUse(procedural: SkillVersions, reader: SkillReader, name: string): Promise<Skill | null> {
  const [inUse] = (await versionsSeen(procedural, reader, name, 'active')).flat();
  if (inUse !== undefined) return inUse;
  const retired = await versionsSeen(procedural, reader, name, 'deprecated');
  return retired.map(([newest]) => newest).find((skill) => skill?.replacedBy !== undefined) ?? null;
}

/** The version that a key names, or null. A key without a user names a skill without a user. */
export async function versionOfKey(
  registry: SkillVersions,
  { tenant, agent, user = null, name, version }: SkillKey,
): Promise<Skill | null> {
  return (await registry.versions({ tenant, agent, user }, name)).find((one) => one.version === version) ?? null;
}
