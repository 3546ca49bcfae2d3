import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import {
  type ProceduralMemorySettings,
  SKILL_SCOPES,
  type SkillDependency,
  type SkillScope,
  type SkillStatus,
} from '@etude/contracts/skill-proof';
import type { ProceduralMemory, SkillOwner, SkillRegistry, StoreSkillOptions } from '../../ports/memory.js';
import { sourceOf } from '../../trust/sources.js';
import { ownerOf, ownersFor, scopeOf } from './find-skill.js';
import { PROMOTED_MARK, withCarriedTests } from './carried-over.js';
import { CALLABLE, type Decision, GONE, isProofOf } from './skill-life.js';

interface RegistrationDeps {
  readonly procedural: ProceduralMemory;
  readonly settings: Pick<ProceduralMemorySettings, 'enabled' | 'maxSkills'>;
}

/**
 * Stores a skill for verification: version 1 of a new name, or the next version. If a version has equal content and equal words, it is returned, with
 * the sources of both. Equal content with other words (description, tags, category, examples, held-out tests) becomes the next version.
 *
 * @param options.setAside the reason to archive the version at once (`StoreSkillOptions`). Such a version doesn't count towards the limit of names
 * @param options.baseVersion the version that was edited. Default: the newest
 * @throws EtudeError ABORTED if `baseVersion` isn't the newest; FAILED_PRECONDITION if skills are switched off, the limit of names is reached, the
 *   version in use has another kind, or the version with this content is out of use
 */
export async function registerSkill(
  candidate: Skill,
  options: Omit<StoreSkillOptions, 'words' | 'namesMax'>,
  deps: RegistrationDeps,
): Promise<Skill> {
  const { procedural, settings } = deps;
  const { scope, name } = candidate;
  requireEnabled(scope.agent, settings);
  const versions = await procedural.versions(scope, name);
  const otherKind = otherKindReason(candidate, versions.find(({ status }) => status === 'active') ?? null);
  if (otherKind !== null) throw new EtudeError('FAILED_PRECONDITION', `skill "${name}": ${otherKind}`, { field: 'kind' });
  const stored = await procedural.store(withCarriedTests(candidate, versions), {
    ...options,
    words: 'edited',
    namesMax: settings.maxSkills,
  });
  if (options.setAside === undefined) requireLiving(stored, versions);
  return stored;
}

/** Refuses to register a version that was taken out of use. Registering doesn't restore a version. @throws EtudeError FAILED_PRECONDITION */
function requireLiving(stored: Skill, versions: readonly Skill[]): void {
  const { name, version, status } = stored;
  if (status !== 'deprecated' && status !== 'archived') return;
  const active = versions.find((other) => other.status === 'active');
  const inUse = active === undefined ? 'and no version is active' : `and version ${active.version} is active`;
  const message = `version ${version} of skill "${name}" has this content already; it is ${status}, ${inUse}. Nothing was stored: ask a reviewer to bring it back (RestoreSkill, RollbackSkill or VerifySkill), or change the content.`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'skill', metadata: { version: String(version), status } });
}

/** @throws EtudeError FAILED_PRECONDITION if skills are switched off for the agent */
export function requireEnabled(agent: string, { enabled }: Pick<ProceduralMemorySettings, 'enabled'>): void {
  if (enabled) return;
  const message = `Skills are off for agent "${agent}". A reviewer turns them on with UpdateAgent (procedural_memory_settings.enabled), or the operator turns them on for all agents (ETUDE_SKILLS_ENABLED).`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'enabled' });
}

/** Whether a skill that nobody asked for may be registered. @param planned number of skills that will be registered before this one */
export async function mayLearn(
  { name, scope }: Pick<Skill, 'name' | 'scope'>,
  { enabled, autoRegisterSkills, maxSkills }: ProceduralMemorySettings,
  registry: Pick<SkillRegistry, 'versions' | 'countNames'>,
  planned = 0,
): Promise<boolean> {
  if (!enabled || !autoRegisterSkills) return false;
  if (maxSkills === 0 || (await registry.countNames(scope)) + planned < maxSkills) return true;
  return !needsRoom(await registry.versions(scope, name));
}

/** Why this version can't replace the active version, or null. The kind must stay the same, because tests and callers depend on it. */
export function otherKindReason(skill: Pick<Skill, 'kind'>, replaced: Pick<Skill, 'kind' | 'version'> | null): string | null {
  if (replaced === null || replaced.kind === skill.kind) return null;
  return `the new version is a ${skill.kind}, but the active version ${replaced.version} is a ${replaced.kind}; use another name`;
}

/** Whether the next version of a name counts towards the limit of names. @param versions all versions of the name that the owner has */
export function needsRoom(versions: ReadonlyArray<{ readonly status: SkillStatus }>): boolean {
  return versions.every(({ status }) => GONE.has(status));
}

/** @param namesMax 0 means no limit. @throws EtudeError FAILED_PRECONDITION if the limit is reached */
export function requireRoom({ agent }: Pick<SkillOwner, 'agent'>, names: number, namesMax: number): void {
  if (namesMax === 0 || names < namesMax) return;
  const message = `"${agent}" has as many skills as it may have (max_skills is ${namesMax}); archive some, or raise the setting`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: ROOM_FIELD });
}

const ROOM_FIELD = 'max_skills';

/** Whether `requireRoom` threw this error, perhaps in another process. */
export function isWithoutRoom(error: unknown): boolean {
  return errorCode(error) === 'FAILED_PRECONDITION' && errorDetails(error).field === ROOM_FIELD;
}

/** A copy starts without cues, fingerprints, members and counts, because these belong to the earlier readers. */
const ANEW = { cues: [], fingerprints: [], members: [], executionCount: 0, successRate: 1 } satisfies Partial<Skill>;

/**
 * Stores a copy of a skill for more readers, as a candidate. The copy is verified anew, because the old evidence may name skills that the new readers
 * can't see. After that, it waits for review. A repeated call returns the same copy.
 *
 * @param decision.namesMax the most skill names that the new owner may have. 0 means no limit
 * @throws EtudeError INVALID_ARGUMENT for a scope that isn't wider; FAILED_PRECONDITION for a skill that is not in use, has no proof for its content,
 *   or calls a skill that the new readers can't see, and if the new owner's limit of names is reached
 */
export async function promoteSkill(
  procedural: ProceduralMemory,
  skill: Skill,
  { scope, namesMax = 0, ...decision }: Decision & { readonly scope: SkillScope; readonly namesMax?: number },
): Promise<Skill> {
  const now = scopeOf(skill);
  if (SKILL_SCOPES.indexOf(scope) <= SKILL_SCOPES.indexOf(now)) {
    const shared = `skill "${skill.name}" is shared with ${now} already; choose a wider scope`;
    throw new EtudeError('INVALID_ARGUMENT', shared, { field: 'scope' });
  }
  if (skill.status !== 'active' || !isProofOf(skill, skill.proof)) {
    const message = `Skill "${skill.name}" is ${skill.status}${skill.proof === undefined ? ' and has no proof' : ''}; only an active skill with a proof for its content can be shared.`;
    throw new EtudeError('FAILED_PRECONDITION', message, { field: 'name' });
  }
  const owner = ownerOf(scope, skill.scope);
  const needed = await Promise.all((skill.dependencies ?? []).map((one) => readablePin(procedural, one, owner)));
  // A global copy names no users. Other tenants must not read users' names, and global skills are never revoked by user.
  const sources = skill.sources.filter((name) => scope !== 'global' || sourceOf(name)?.kind !== 'users');
  const untrusted = [...new Set([...(skill.untrusted ?? []), PROMOTED_MARK])];
  const { by, reason, at } = decision;
  const statusReason = `shared by ${by}${reason === '' ? '' : `: ${reason}`}`;
  const anew = { ...ANEW, sources, untrusted, statusReason, scope: owner, createdAt: at, updatedAt: at };
  const copy = { ...skill, ...anew, ...(needed.length === 0 ? {} : { dependencies: needed }) };
  return procedural.store(copy, { by, isReviewed: true, words: 'kept', namesMax });
}

/** A pin of the same content, under an owner whose skills the new readers see. The old proof still holds, because a proof covers only content. */
async function readablePin(procedural: ProceduralMemory, pin: SkillDependency, owner: Scope): Promise<SkillDependency> {
  for (const view of ownersFor(owner)) {
    const versions = await procedural.versions(view, pin.name);
    const same = versions.find(({ digest, status }) => digest === pin.digest && CALLABLE.has(status));
    if (same !== undefined) return { ...pin, ...view, version: same.version };
  }
  const message = `the new readers can't see the called skill "${pin.name}" version ${pin.version} of "${pin.agent}"; share and approve that skill first`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'scope' });
}
