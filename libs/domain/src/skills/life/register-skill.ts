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

export interface RegistrationDeps {
  readonly procedural: ProceduralMemory;
  readonly settings: Pick<ProceduralMemorySettings, 'enabled' | 'maxSkills'>;
}

/**
 * Stores a skill as its author made it, for verification: version 1 of a new name, or the next version. Equal content returns the existing version
 * with the sources of both; in other words (description, tags, category, examples, held-out tests), it becomes the next version. Held-out tests carry
 * over.
 *
 * @param options.setAside see `StoreSkillOptions`; such a version needs no room
 * @param options.baseVersion the version that was edited; absent: the newest
 * @throws EtudeError ABORTED where `baseVersion` isn't the newest; FAILED_PRECONDITION where skills are switched off, there is no room, the version
 *   in use has another kind, or the version with this content is out of use
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

/** Refuses to register a version that was taken out of use. Other calls restore it. @throws EtudeError FAILED_PRECONDITION */
function requireLiving(stored: Skill, versions: readonly Skill[]): void {
  const { name, version, status } = stored;
  if (status !== 'deprecated' && status !== 'archived') return;
  const active = versions.find((other) => other.status === 'active');
  const inUse = active === undefined ? 'and no version is active' : `and version ${active.version} is active`;
  const message = `version ${version} of skill "${name}" has this content already; it is ${status}, ${inUse}. Nothing was stored: ask a reviewer to bring it back (RestoreSkill, RollbackSkill or VerifySkill), or change the content.`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'skill', metadata: { version: String(version), status } });
}

/** @throws EtudeError FAILED_PRECONDITION where skills are switched off for the agent */
export function requireEnabled(agent: string, { enabled }: Pick<ProceduralMemorySettings, 'enabled'>): void {
  if (enabled) return;
  const message = `Skills are off for agent "${agent}". A reviewer sets procedural_memory_settings.enabled with UpdateAgent, or the operator ETUDE_SKILLS_ENABLED for all.`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'enabled' });
}

/**
 * Whether a skill that nobody asked for may be registered: the agent's settings allow it, and there is room. A new version of an existing skill needs
 * no room. The store enforces the limit too. @param planned number of skills that will be registered before this one
 */
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

/** Why this version can't replace the active one; null: it can. Its kind must be the same, for the tests and for the callers. */
export function otherKindReason(skill: Pick<Skill, 'kind'>, replaced: Pick<Skill, 'kind' | 'version'> | null): string | null {
  if (replaced === null || replaced.kind === skill.kind) return null;
  return `the new version is a ${skill.kind}, but the active version ${replaced.version} is a ${replaced.kind}; use another name`;
}

/** Whether the next version counts towards the limit of names. @param versions all of the name that the owner has */
export function needsRoom(versions: ReadonlyArray<{ readonly status: SkillStatus }>): boolean {
  return versions.every(({ status }) => GONE.has(status));
}

/** @param namesMax 0: any number. @throws EtudeError FAILED_PRECONDITION where the limit is reached */
export function requireRoom({ agent }: Pick<SkillOwner, 'agent'>, names: number, namesMax: number): void {
  if (namesMax === 0 || names < namesMax) return;
  const message = `"${agent}" has as many skills as it may have (max_skills is ${namesMax}); archive some, or raise the setting`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: ROOM_FIELD });
}

const ROOM_FIELD = 'max_skills';

/** Whether an error is the refusal of `requireRoom`, also from another process. */
export function isWithoutRoom(error: unknown): boolean {
  return errorCode(error) === 'FAILED_PRECONDITION' && errorDetails(error).field === ROOM_FIELD;
}

/** The copy starts without cues, fingerprints, members and counts, which belong to the earlier readers. */
const ANEW = { cues: [], fingerprints: [], members: [], executionCount: 0, successRate: 1 } satisfies Partial<Skill>;

/**
 * Stores a copy of a skill for more readers, as a candidate. The copy is verified anew, because the old evidence may name skills that the
 * new readers can't see. Then it waits for review. A repeated call finds the copy.
 *
 * @param decision.namesMax how many skills the new owner may have; 0: any number
 * @throws EtudeError INVALID_ARGUMENT for a scope that isn't wider; FAILED_PRECONDITION for a skill that is not in use, has no proof for
 *   its content, or calls a skill that the new readers can't see, and where they have no room
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
  // A global copy names no users: other tenants must not read these names, and global skills are never revoked by user.
  const sources = skill.sources.filter((name) => scope !== 'global' || sourceOf(name)?.kind !== 'users');
  const untrusted = [...new Set([...(skill.untrusted ?? []), PROMOTED_MARK])];
  const { by, reason, at } = decision;
  const statusReason = `shared by ${by}${reason === '' ? '' : `: ${reason}`}`;
  const anew = { ...ANEW, sources, untrusted, statusReason, scope: owner, createdAt: at, updatedAt: at };
  const copy = { ...skill, ...anew, ...(needed.length === 0 ? {} : { dependencies: needed }) };
  return procedural.store(copy, { by, isReviewed: true, words: 'kept', namesMax });
}

/** A pin of the same content under an owner whose skills the new readers see. The proof still holds, because it covers content. */
async function readablePin(procedural: ProceduralMemory, pin: SkillDependency, owner: Scope): Promise<SkillDependency> {
  for (const view of ownersFor(owner)) {
    const versions = await procedural.versions(view, pin.name);
    const same = versions.find(({ digest, status }) => digest === pin.digest && CALLABLE.has(status));
    if (same !== undefined) return { ...pin, ...view, version: same.version };
  }
  const message = `the new readers can't see the called skill "${pin.name}" version ${pin.version} of "${pin.agent}"; share and approve that skill first`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'scope' });
}
