import { errorCode, EtudeError, type ErrorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemorySettings, SkillChange, SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';
import { SKILL_STATUSES } from '@etude/contracts/skill-proof';
import type { SkillMove, SkillRegistry } from '../../ports/memory.js';
import { isPinOf, neededSkills, refusalOf } from './call-graph.js';
import { findSkill } from './find-skill.js';
import { membersReplaced, mergeMoves } from './merged-skills.js';
import {
  activatedAt,
  CALLABLE,
  type Decision,
  isProofOf,
  moveOf,
  reasonsForReview,
  replacedReason,
  VERIFIER,
  wasActive,
  wasBefore,
} from './skill-life.js';

type Approval = Pick<ProceduralMemorySettings, 'approvalMode' | 'skillRegistrationConfidenceThreshold'>;

export interface Verified {
  readonly passed: boolean;
  readonly evidence: readonly string[];
  /** Why the skill did not pass. Empty if it passed. */
  readonly reason: string;
  readonly contract?: SkillContract | null;
  readonly proof?: SkillProof;
}

/** Records the outcome of a verification. A skill that doesn't pass loses its proof. It is deprecated if it is in use, and otherwise rejected. */
export async function recordVerification(procedural: SkillRegistry, skill: Skill, found: Verified, at: number): Promise<Skill> {
  const { passed, evidence, reason, contract, proof } = found;
  const passedTo = skill.status === 'candidate' ? 'verified' : skill.status;
  const failedTo = skill.status === 'active' ? 'deprecated' : 'rejected';
  const believed = passed ? (proof === undefined ? {} : { proof }) : { proof: null };
  const read = contract === undefined || contract === null ? {} : { contract };
  const decision = { by: VERIFIER, reason, at };
  return moveOne(procedural, moveOf(skill, passed ? passedTo : failedTo, decision, { evidence, ...believed, ...read }));
}

/**
 * Gives a verified skill its next status, by the agent's settings. A skill from untrusted sources, or with a finding of severity "error", waits for a
 * person. A skill is rejected if a skill that it calls was archived during verification. After a crash, a second call finishes the first.
 *
 * @throws EtudeError ABORTED if the skill was verified against a version that is not the one in use
 */
export async function settleVerified(procedural: SkillRegistry, skill: Skill, settings: Approval, at: number): Promise<Skill> {
  if (skill.status === 'active') return activate(procedural, skill, { by: VERIFIER, reason: skill.statusReason, at });
  if (skill.status !== 'verified') return skill;
  const why = (await newerInUse(procedural, skill)) ?? reasonToWait(skill, settings);
  try {
    if (why === null) return await activate(procedural, skill, { by: VERIFIER, reason: 'approved automatically after verification', at });
    const reason = why === '' ? 'waits for review' : `waits for review: ${why}`;
    return await moveOne(procedural, moveOf(skill, 'pending_review', { by: VERIFIER, reason, at }));
  } catch (error) {
    if (errorCode(error) !== 'FAILED_PRECONDITION') throw error;
    const reason = await neededSkills(procedural, skill).catch(refusalOf);
    if (typeof reason !== 'string') throw error;
    return moveOne(procedural, moveOf(skill, 'rejected', { by: VERIFIER, reason, at }));
  }
}

/** Whether the skill's evidence includes the tests of the version that it would replace. */
export function isVerifiedAgainst({ kind, proof }: Skill, replaced: Skill | null): boolean {
  if (replaced === null || kind !== 'function' || replaced.kind !== 'function') return true;
  const { version, digest } = replaced;
  return (proof?.kept ?? []).some((one) => isPinOf(one, replaced) && one.version === version && one.digest === digest);
}

/** Why the skill waits for review. null if it may be used at once. Empty if only the setting asks for a review. */
function reasonToWait(skill: Skill, { approvalMode, skillRegistrationConfidenceThreshold: min }: Approval): string | null {
  const reasons = reasonsForReview(skill);
  if (reasons.length > 0) return reasons.join('; ');
  const confidence = skill.proof?.confidence ?? 0;
  if (approvalMode === 'threshold' && confidence < min) return `its confidence of ${confidence.toFixed(2)} is below ${min.toFixed(2)}`;
  return approvalMode === 'review' ? '' : null;
}

async function newerInUse(procedural: SkillRegistry, skill: Skill): Promise<string | null> {
  const newer = (await activeVersions(procedural, skill)).find(({ version }) => version > skill.version);
  return newer === undefined ? null : `version ${newer.version} is active already`;
}

/**
 * Activates a skill that somebody reviewed. Approving an active skill leaves it as it is.
 *
 * @param decision.merge another skill of the same owner that does the same. It is deprecated, and a search for its name then finds the approved skill
 * @throws EtudeError ABORTED if the digest or the version in use changed, or if no review is due; FAILED_PRECONDITION without a proof
 */
export async function approveSkill(
  procedural: SkillRegistry,
  skill: Skill,
  decision: Decision & { readonly digest: string; readonly merge?: Skill },
): Promise<Skill> {
  const { name, status } = skill;
  const { digest, merge, by, reason, at } = decision;
  if (skill.digest !== digest)
    throw refusal(
      'ABORTED',
      'digest',
      `Skill "${name}" changed: its digest is ${skill.digest}, not the reviewed ${digest}. Review it again.`,
    );
  if (status !== 'pending_review' && status !== 'active')
    throw refusal('ABORTED', 'name', `Skill "${name}" is ${status}; only a skill in review (pending_review) can be approved.`);
  const merged = merge === undefined ? [] : await mergedVersions(procedural, skill, merge);
  const also = merged.flatMap((other) => mergeMoves(skill, other, { by, at }));
  return activate(procedural, skill, { by, at, reason: reason === '' ? `approved by ${by}` : reason }, also);
}

/** @throws EtudeError INVALID_ARGUMENT for the skill itself; FAILED_PRECONDITION if the other skill has readers that this skill lacks */
async function mergedVersions(procedural: SkillRegistry, skill: Skill, other: Skill): Promise<readonly Skill[]> {
  const [a, b] = [skill.scope, other.scope];
  if (skill.name === other.name)
    throw refusal('INVALID_ARGUMENT', 'merge', `skill "${skill.name}" can't be merged with itself; name another skill`);
  if (a.tenant !== b.tenant || a.agent !== b.agent || (a.user !== null && a.user !== b.user)) {
    const readers = `skill "${other.name}" has other readers than "${skill.name}"`;
    throw refusal('FAILED_PRECONDITION', 'merge', `${readers}; only skills of one owner can be merged`);
  }
  const active = await procedural.versions(other.scope, other.name, 'active');
  return active.length > 0 ? active : other.status === 'deprecated' ? [other] : [];
}

/** Rejects a candidate, or a skill that waits for review. @throws EtudeError ABORTED for a skill that is or was in use */
export function rejectSkill(procedural: SkillRegistry, skill: Skill, decision: Decision): Promise<Skill> {
  return moveOne(procedural, moveOf(skill, 'rejected', decision, { from: ['candidate', 'verified', 'pending_review'] }));
}

/**
 * Activates an earlier version in place of the active version. A repeat of the same decision changes nothing.
 *
 * @param decision.toVersion if absent, the newest version that was in use before the active one
 * @throws EtudeError NOT_FOUND for an unknown version; FAILED_PRECONDITION for a version that was never in use, is archived, or has no proof
 */
export async function rollbackSkill(
  procedural: SkillRegistry,
  { scope, name }: Skill,
  { toVersion, ...decision }: Decision & { readonly toVersion?: number | undefined },
): Promise<Skill> {
  const versions = await procedural.versions(scope, name);
  const isOwn = ({ to, by, at, reason }: SkillChange) =>
    to === 'active' && by === decision.by && at === decision.at && reason === decision.reason;
  const done = versions.find(({ version, history = [] }) => (toVersion ?? version) === version && history.some(isOwn));
  if (done !== undefined) return done.status === 'active' ? activate(procedural, done, decision) : done;
  const present = versions.find(({ status }) => status === 'active') ?? versions.find(wasActive);
  const earlier = versions.find((one) => one.version < (present?.version ?? 0) && isRestorable(one));
  const target = toVersion === undefined ? earlier : versions.find(({ version }) => version === toVersion);
  if (target === undefined && toVersion !== undefined)
    throw refusal('NOT_FOUND', 'to_version', `Skill "${name}" has no version ${toVersion}.`);
  if (target !== undefined && isRestorable(target)) return activate(procedural, target, decision);
  const which =
    target === undefined ? 'has no earlier version' : `can't be rolled back to version ${target.version}, which is ${target.status}`;
  const message = `skill "${name}" ${which}; only a version that was in use and is not archived can be activated again`;
  throw refusal('FAILED_PRECONDITION', 'to_version', message);
}

const isRestorable = (skill: Skill) => wasActive(skill) && CALLABLE.has(skill.status);

/** Activates a version and deprecates what it replaces, in one call. @throws EtudeError ABORTED if it has not passed the active version's tests */
async function activate(procedural: SkillRegistry, skill: Skill, decision: Decision, also: readonly SkillMove[] = []): Promise<Skill> {
  const { name, version, status } = skill;
  const active = await activeVersions(procedural, skill);
  const others = active.filter((other) => status !== 'active' || activatedAt(other) <= activatedAt(skill));
  const unmet = status === 'verified' || status === 'pending_review' ? others.find((other) => !isVerifiedAgainst(skill, other)) : undefined;
  if (unmet !== undefined) {
    const missed = `Version ${version} of skill "${name}" was not run on the tests of version ${unmet.version}, which became active meanwhile.`;
    throw refusal('ABORTED', 'version', `${missed} Verify it again, then approve it.`);
  }
  const replaced = others.map((other) => moveOf(other, 'deprecated', { ...decision, reason: replacedReason(version) }));
  const own = status === 'active' ? [] : [moveOf(skill, 'active', decision)];
  const moves = [...own, ...replaced, ...(await membersReplaced(procedural, skill, decision)), ...also];
  const moved = moves.length === 0 ? [] : await procedural.move(moves);
  return own.length === 0 ? skill : (moved[0] ?? skill);
}

async function activeVersions(procedural: SkillRegistry, skill: Skill): Promise<readonly Skill[]> {
  const versions = await procedural.versions(skill.scope, skill.name, 'active');
  return versions.filter(({ version }) => version !== skill.version);
}

/**
 * The active version of the same owner that this skill would replace, or null. For a skill in review any active version counts, because a later
 * version may be activated before the approval. For other skills only an earlier version counts.
 */
export async function activeVersion(procedural: SkillRegistry, skill: Skill): Promise<Skill | null> {
  const active = await activeVersions(procedural, skill);
  return active.find(({ version }) => version < skill.version || skill.status === 'pending_review') ?? null;
}

async function moveOne(procedural: Pick<SkillRegistry, 'move'>, move: SkillMove): Promise<Skill> {
  return (await procedural.move([move]))[0]!;
}

const refusal = (code: ErrorCode, field: string, message: string) => new EtudeError(code, message, { field });

/**
 * Takes a skill out of use. If `replacedBy` is given, a search for its name then finds that skill.
 *
 * @throws EtudeError INVALID_ARGUMENT if the skill would replace itself; NOT_FOUND if its readers have no active skill `replacedBy`
 */
export async function deprecateSkill(
  procedural: Pick<SkillRegistry, 'move' | 'versions'>,
  skill: Skill,
  { replacedBy, ...decision }: Decision & { readonly replacedBy?: string },
): Promise<Skill> {
  const { name, scope } = skill;
  if (replacedBy === name) throw refusal('INVALID_ARGUMENT', 'replaced_by', `skill "${name}" can't replace itself; name another skill`);
  if (replacedBy !== undefined && (await findSkill(procedural, scope, replacedBy, { status: 'active' })) === null) {
    const missing = `there is no active skill "${replacedBy}" that everybody who reads "${name}" can use`;
    throw refusal('NOT_FOUND', 'replaced_by', missing);
  }
  const named = replacedBy === undefined ? {} : { replacedBy };
  return moveOne(procedural, moveOf(skill, 'deprecated', decision, { from: ['active', 'deprecated'], ...named }));
}

/** Archives these versions, all or none. @throws EtudeError FAILED_PRECONDITION if a skill in use or in review needs one of them */
export async function archiveSkill(
  procedural: Pick<SkillRegistry, 'move'>,
  versions: readonly Skill[],
  decision: Decision,
): Promise<readonly Skill[]> {
  return procedural.move(versions.map((skill) => moveOf(skill, 'archived', decision, { from: SKILL_STATUSES })));
}

/**
 * Undoes archiving: each version gets its earlier status back. `active` and `pending_review` come back only with a proof for the content, except for
 * an active procedure in words. `active` comes back only while no other version is active. Otherwise a version that was ever in use becomes
 * deprecated, and any other version becomes a candidate and is verified again.
 *
 * @param versions archived versions of one owner's skill
 * @throws EtudeError ABORTED for a version that isn't archived; FAILED_PRECONDITION if a version that comes into use calls an archived skill
 */
export async function restoreSkill(procedural: SkillRegistry, versions: readonly Skill[], decision: Decision): Promise<readonly Skill[]> {
  const moves: SkillMove[] = [];
  let isFree: boolean | null = null;
  for (const skill of versions.toSorted((a, b) => b.version - a.version)) {
    if (skill.status !== 'archived')
      throw refusal('ABORTED', 'name', `Skill "${skill.name}" is ${skill.status}; only an archived skill can be restored.`);
    isFree ??= (await activeVersions(procedural, skill)).length === 0;
    const to = restoredStatus(skill, isFree);
    if (to === 'active') isFree = false;
    moves.push(moveOf(skill, to, decision));
  }
  return procedural.move(moves);
}

function restoredStatus(skill: Skill, isFree: boolean): SkillStatus {
  const before = wasBefore(skill);
  const isProven = isProofOf(skill, skill.proof);
  if (before === 'rejected' || (before === 'pending_review' && isProven)) return before;
  if (before === 'active' && isFree && (isProven || skill.kind === 'procedure')) return before;
  return wasActive(skill) ? 'deprecated' : 'candidate';
}
