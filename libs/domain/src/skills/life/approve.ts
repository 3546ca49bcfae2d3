import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemorySettings, SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillMove, SkillRegistry } from '../../ports/skill-registry.js';
import { uncallableReason } from './callers.js';
import { activatedAt, otherActive } from './one-active.js';
import { isPinOf } from './pins.js';
import { keyOf, reasonsForReview, VERIFIER } from './skill-life.js';

/** Somebody's decision about a skill. */
export interface Decision {
  /** Name of a key, or of a service such as "verification". */
  readonly by: string;
  readonly reason: string;
  /** ms since 1970 */
  readonly at: number;
}

/** What of an agent's settings says who approves. */
export type Approval = Pick<ProceduralMemorySettings, 'approvalMode' | 'skillRegistrationConfidenceThreshold'>;

/** What verification of a skill found. */
export interface Verified {
  readonly passed: boolean;
  readonly evidence: readonly string[];
  /** Why it did not pass; empty where it did. */
  readonly reason: string;
  readonly contract?: SkillContract | null;
  readonly proof?: SkillProof;
}

/**
 * What a verification found, written down: a candidate is `verified`, or `rejected` with the reason. What is in use, or waits for
 * review, stays so with its new proof; else it is deprecated, or rejected, and its old proof is not believed any more.
 */
export async function recordVerification(procedural: SkillRegistry, skill: Skill, found: Verified, at: number): Promise<Skill> {
  const { passed, evidence, reason, contract, proof } = found;
  const again = skill.status === 'candidate' ? null : skill.status;
  const newErrors = again === 'active' && passed ? errorsBeside(skill, proof) : [];
  const failed = !passed || newErrors.length > 0;
  const decision = { by: VERIFIER, at, reason: newErrors.length > 0 ? `verification finds: ${newErrors.join('; ')}` : reason };
  const to = failed ? (again === 'active' ? 'deprecated' : 'rejected') : (again ?? 'verified');
  const withProof = failed ? { proof: null } : proof === undefined ? {} : { proof };
  const withContract = contract === undefined || contract === null ? {} : { contract };
  return moveOne(procedural, skill, { ...decision, to, from: [again ?? 'candidate'], evidence, ...withProof, ...withContract });
}

/** What nobody had seen when the skill was approved. */
function errorsBeside(skill: Skill, proof: SkillProof | undefined): readonly string[] {
  const known = new Set(reasonsForReview(skill));
  return reasonsForReview({ ...skill, ...(proof === undefined ? {} : { proof }) }).filter((reason) => !known.has(reason));
}

/**
 * The next status of a verified skill, by the agent's settings. What is marked, or has a finding that is an error, waits for a person
 * whatever they say. Where it becomes active, the version it replaces stops being used.
 * Where what it calls was archived while it was verified, it is rejected. Repeating it after a crash finishes what was begun.
 *
 * @param replaced the version in use that it was verified against; null: there was none. Absent: whichever is in use
 * @throws EtudeError ABORTED where another version is in use by now
 */
export async function settleVerified(
  procedural: SkillRegistry,
  skill: Skill,
  settings: Approval,
  at: number,
  replaced?: Skill | null,
): Promise<Skill> {
  try {
    return await settleOnce(procedural, skill, settings, at, replaced);
  } catch (error) {
    const reason = errorCode(error) === 'FAILED_PRECONDITION' ? await uncallableReason(procedural, skill) : null;
    if (skill.status !== 'verified' || reason === null) throw error;
    return moveOne(procedural, skill, { to: 'rejected', from: ['verified'], by: VERIFIER, reason, at });
  }
}

async function settleOnce(
  procedural: SkillRegistry,
  skill: Skill,
  settings: Approval,
  at: number,
  replaced?: Skill | null,
): Promise<Skill> {
  if (skill.status === 'active') return activate(procedural, skill, { by: VERIFIER, reason: skill.statusReason, at });
  if (skill.status !== 'verified') return skill;
  const reason = (await newerInUse(procedural, skill)) ?? reasonToWait(skill, settings);
  if (reason !== null) {
    const waits = reason === '' ? 'waits for review' : `waits for review: ${reason}`;
    return moveOne(procedural, skill, { to: 'pending_review', from: ['verified'], by: VERIFIER, reason: waits, at });
  }
  const decision = { by: VERIFIER, reason: 'approved automatically after verification', at };
  return activate(procedural, skill, decision, replaced === undefined ? {} : { replaced });
}

/** Whether its evidence holds the tests of this version, which it would replace. */
export function isVerifiedAgainst({ kind, proof }: Skill, replaced: Skill | null): boolean {
  if (replaced === null || kind !== 'function' || replaced.kind !== 'function') return true;
  const { version, digest } = replaced;
  return (proof?.kept ?? []).some((one) => isPinOf(one, replaced) && one.version === version && one.digest === digest);
}

/** null: nothing keeps it from being used at once. Empty: nothing but the setting. */
function reasonToWait(skill: Skill, { approvalMode, skillRegistrationConfidenceThreshold: min }: Approval): string | null {
  const reasons = reasonsForReview(skill);
  if (reasons.length > 0) return reasons.join('; ');
  const confidence = skill.proof?.confidence ?? 0;
  if (approvalMode === 'threshold' && confidence < min) return `its confidence of ${confidence.toFixed(2)} is below ${min.toFixed(2)}`;
  return approvalMode === 'review' ? '' : null;
}

/** A verification that came late takes nobody's newer version away. */
async function newerInUse(procedural: SkillRegistry, skill: Skill): Promise<string | null> {
  const newer = (await activeVersions(procedural, skill)).find(({ version }) => version > skill.version);
  return newer === undefined ? null : `version ${newer.version} is active already`;
}

/**
 * Somebody approves what they reviewed. Approving what is active already changes nothing.
 *
 * @param decision.digest what was reviewed
 * @param decision.merge skill of the same owner that does the same: it is deprecated, and who asks for it finds this one
 * @throws EtudeError ABORTED where the digest is another one or the skill does not wait for review; FAILED_PRECONDITION without a proof
 */
export async function approveSkill(
  procedural: SkillRegistry,
  skill: Skill,
  decision: Decision & { readonly digest: string; readonly merge?: Skill },
): Promise<Skill> {
  const { digest, merge, by, reason, at } = decision;
  if (skill.digest !== digest) {
    throw new EtudeError(
      'ABORTED',
      `Skill "${skill.name}" changed: its digest is ${skill.digest}, not the ${digest} that was reviewed. Review it again.`,
      { field: 'digest' },
    );
  }
  if (skill.status !== 'pending_review' && skill.status !== 'active')
    throw new EtudeError(
      'ABORTED',
      `Skill "${skill.name}" is ${skill.status}; only one that waits for review (pending_review) can be approved.`,
      { field: 'name' },
    );
  const replaced = await activeVersion(procedural, skill);
  if (skill.status === 'pending_review' && !isVerifiedAgainst(skill, replaced)) throw outdated(skill, replaced);
  const merged = merge === undefined ? [] : await mergedVersions(procedural, skill, merge);
  const moves = merged.map((other) =>
    moveOf(other, { ...decision, reason: `merged into ${skill.name}`, to: 'deprecated', replacedBy: skill.name }),
  );
  const only = skill.status === 'pending_review' ? { replaced } : {};
  return activate(procedural, skill, { by, at, reason: reason === '' ? `approved by ${by}` : reason }, { also: moves, ...only });
}

function outdated({ name, version }: Skill, replaced: Skill | null): EtudeError {
  return new EtudeError(
    'ABORTED',
    `Version ${version} of skill "${name}" was not held to the tests of version ${replaced?.version}, which came into use meanwhile. Verify it again, then approve it.`,
    { field: 'version' },
  );
}

/** @throws EtudeError INVALID_ARGUMENT, FAILED_PRECONDITION where somebody reads the other skill who does not read this one */
async function mergedVersions(procedural: SkillRegistry, skill: Skill, other: Skill): Promise<readonly Skill[]> {
  const [a, b] = [skill.scope, other.scope];
  const isSame = skill.name === other.name;
  const isReadable = a.tenant === b.tenant && a.agent === b.agent && (a.user === null || a.user === b.user);
  if (isSame) throw new EtudeError('INVALID_ARGUMENT', `skill "${skill.name}" can't be merged with itself`, { field: 'merge' });
  if (!isReadable)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `skill "${other.name}" has other readers than "${skill.name}"; only skills of one owner can be merged`,
      { field: 'merge' },
    );
  const active = await versionsLike(procedural, other, 'active');
  return active.length > 0 ? active : other.status === 'deprecated' ? [other] : [];
}

/** A candidate or what waits for review is not wanted. @throws EtudeError ABORTED for what is in use or was */
export function rejectSkill(procedural: SkillRegistry, skill: Skill, decision: Decision): Promise<Skill> {
  return moveOne(procedural, skill, { ...decision, to: 'rejected', from: ['candidate', 'verified', 'pending_review'] });
}

interface Activation {
  /** Moves that go with it. */
  readonly also?: readonly SkillMove[];
  /** The only version that it may replace; null: none. Absent: any. */
  readonly replaced?: Skill | null;
}

/** Versions of the same owner in use now are replaced by it, in one call. @throws EtudeError ABORTED where another one is in use */
async function activate(
  procedural: SkillRegistry,
  skill: Skill,
  decision: Decision,
  { also = [], replaced: expected }: Activation = {},
): Promise<Skill> {
  const others = (await activeVersions(procedural, skill)).filter(
    (other) => skill.status !== 'active' || activatedAt(other) <= activatedAt(skill),
  );
  const unknown = expected === undefined ? undefined : others.find(({ version }) => version !== expected?.version);
  if (unknown !== undefined) throw otherActive(skill, unknown);
  const replaced = others.map((other) =>
    moveOf(other, { ...decision, to: 'deprecated', from: ['active'], reason: `replaced by version ${skill.version}` }),
  );
  const own = skill.status === 'active' ? [] : [moveOf(skill, { ...decision, to: 'active', from: [skill.status] })];
  const moves = [...own, ...replaced, ...also];
  const moved = moves.length === 0 ? [] : await procedural.move(moves);
  return own.length === 0 ? skill : (moved[0] ?? skill);
}

/** Active versions of the same owner beside this one, newest first: nobody replaces what is another's. */
export async function activeVersions(procedural: SkillRegistry, skill: Skill): Promise<readonly Skill[]> {
  const versions = await versionsLike(procedural, skill, 'active');
  return versions.filter(({ version, name }) => name === skill.name && version !== skill.version);
}

/**
 * The active version of the same owner whose place this one would take; null where there is none. That is an earlier one, and for what
 * waits for review any: it is approved when others may have come into use. What was in use before is held to nothing newer.
 */
export async function activeVersion(procedural: SkillRegistry, skill: Skill): Promise<Skill | null> {
  const active = await activeVersions(procedural, skill);
  return active.find(({ version }) => version < skill.version || skill.status === 'pending_review') ?? null;
}

function versionsLike(procedural: SkillRegistry, { scope, name }: Skill, status?: SkillStatus): Promise<readonly Skill[]> {
  return procedural.versions(scope, name, status);
}

/** A move of exactly this version, with this content. */
export function moveOf(skill: Skill, move: Omit<SkillMove, 'key'>): SkillMove {
  const { to, from, by, reason, at, evidence, contract, proof, replacedBy } = move;
  return {
    key: keyOf(skill),
    to,
    by,
    reason,
    at,
    ...(from === undefined ? {} : { from }),
    ...(evidence === undefined ? {} : { evidence }),
    ...(contract === undefined ? {} : { contract }),
    ...(proof === undefined ? {} : { proof }),
    ...(replacedBy === undefined ? {} : { replacedBy }),
  };
}

async function moveOne(procedural: SkillRegistry, skill: Skill, move: Omit<SkillMove, 'key'>): Promise<Skill> {
  const [moved] = await procedural.move([moveOf(skill, move)]);
  return moved ?? skill;
}
