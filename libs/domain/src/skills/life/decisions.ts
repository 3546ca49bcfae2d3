import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemorySettings, SkillChange, SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillMove, SkillRegistry } from '../../ports/skill-registry.js';
import { isPinOf, uncallableReason } from './call-graph.js';
import { activatedAt, isProofOf, keyOf, otherActive, reasonsForReview, VERIFIER, wasActive, wasBefore } from './skill-life.js';
import { findSkill } from './find-skill.js';

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
  const active = await procedural.versions(other.scope, other.name, 'active');
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
  const versions = await procedural.versions(skill.scope, skill.name, 'active');
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

/** A move of exactly this version, with this content. */
export function moveOf(skill: Skill, { to, by, reason, at, ...rest }: Omit<SkillMove, 'key'>): SkillMove {
  const { from, evidence, contract, proof, replacedBy } = rest;
  const given = Object.entries({ from, evidence, contract, proof, replacedBy }).filter(([, value]) => value !== undefined);
  return { key: keyOf(skill), to, by, reason, at, ...Object.fromEntries(given) };
}

async function moveOne(procedural: SkillRegistry, skill: Skill, move: Omit<SkillMove, 'key'>): Promise<Skill> {
  const [moved] = await procedural.move([moveOf(skill, move)]);
  return moved ?? skill;
}

/**
 * Not used any more; `replacedBy` is found in its place.
 *
 * @throws EtudeError INVALID_ARGUMENT for itself; NOT_FOUND where whoever reads this skill can use no active one of that name: so no
 *   chain of replacements leads back, since what is deprecated takes nobody's place
 */
export async function deprecateSkill(
  procedural: Pick<SkillRegistry, 'versions' | 'move'>,
  skill: Skill,
  { replacedBy, ...decision }: Decision & { readonly replacedBy?: string },
): Promise<Skill> {
  if (replacedBy === skill.name)
    throw new EtudeError('INVALID_ARGUMENT', `skill "${skill.name}" can't take its own place; name another one`, { field: 'replaced_by' });
  if (replacedBy !== undefined) await requireReplacement(procedural, skill, replacedBy);
  const named = replacedBy === undefined ? {} : { replacedBy };
  const [moved] = await procedural.move([moveOf(skill, { ...decision, to: 'deprecated', from: ['active', 'deprecated'], ...named })]);
  return moved ?? skill;
}

async function requireReplacement(procedural: Pick<SkillRegistry, 'versions'>, { scope, name }: Skill, other: string) {
  if ((await findSkill(procedural, scope, other, { status: 'active' })) !== null) return;
  throw new EtudeError('NOT_FOUND', `there is no active skill "${other}" that everybody who reads "${name}" can use`, {
    field: 'replaced_by',
  });
}

/**
 * Out of sight, all or none of these versions of one owner's skill.
 *
 * @throws EtudeError FAILED_PRECONDITION where another skill, active or waiting for review, calls one of them, at any depth: it could not
 *   run any more
 */
export async function archiveSkill(
  procedural: Pick<SkillRegistry, 'move'>,
  versions: readonly Skill[],
  decision: Decision,
): Promise<readonly Skill[]> {
  return procedural.move(versions.map((skill) => moveOf(skill, { ...decision, to: 'archived' })));
}

/**
 * Undoes archiving: each version is again what it was. What was active, or waited for review, is so only with a proof for its content
 * and, to be active, where no other version took its place; else it is deprecated where it was used once, or a candidate, which has to
 * be verified again.
 *
 * @param versions archived ones of one owner's skill
 * @param decision.namesMax how many skills its owner may have; 0: any number
 * @throws EtudeError ABORTED for what is not archived; FAILED_PRECONDITION where it calls what is archived, and would be in use again, and
 *   where its owner has as many as they may
 */
export async function restoreSkill(
  procedural: SkillRegistry,
  versions: readonly Skill[],
  { namesMax = 0, ...decision }: Decision & { readonly namesMax?: number },
): Promise<readonly Skill[]> {
  const moves: SkillMove[] = [];
  let isFree: boolean | null = null;
  for (const skill of versions.toSorted((a, b) => b.version - a.version)) {
    if (skill.status !== 'archived')
      throw new EtudeError('ABORTED', `Skill "${skill.name}" is ${skill.status}; only what was archived can be restored.`, {
        field: 'name',
      });
    isFree ??= (await activeVersions(procedural, skill)).length === 0;
    const to = restoredStatus(skill, isFree);
    if (to === 'active') isFree = false;
    moves.push(moveOf(skill, { ...decision, to, from: ['archived'] }));
  }
  return procedural.move(moves, { namesMax });
}

function restoredStatus(skill: Skill, isFree: boolean): SkillStatus {
  const before = wasBefore(skill);
  const isUsable = isProofOf(skill, skill.proof) || skill.kind === 'procedure';
  if (before === 'rejected') return before;
  if ((before === 'active' && isFree && isUsable) || (before === 'pending_review' && isProofOf(skill, skill.proof))) return before;
  return wasActive(skill) || before === 'deprecated' || before === 'active' ? 'deprecated' : 'candidate';
}

/** Those that were archived with the last that was: one decision is undone, and not those before it. */
export function archivedLast(versions: readonly Skill[]): readonly Skill[] {
  const archived = versions.filter(({ status }) => status === 'archived');
  const last = Math.max(...archived.map(archivedAt));
  return archived.filter((skill) => archivedAt(skill) === last);
}

/** ms since 1970 */
function archivedAt({ history = [] }: Skill): number {
  return history.findLast(({ from, to }) => to === 'archived' && from !== 'archived')?.at ?? 0;
}

/**
 * An earlier version is used again and the present one is deprecated, both or none. The same decision again changes nothing.
 *
 * @param skill any version of it
 * @param decision.toVersion absent: the newest that was in use before the present one
 * @param decision.inUse the version that was in use when this was decided; absent: just now
 * @throws EtudeError NOT_FOUND, FAILED_PRECONDITION where there is none, or none with a proof for its content; ABORTED where another one
 *   than `inUse` is in use
 */
export async function rollbackSkill(
  procedural: SkillRegistry,
  skill: Skill,
  { toVersion, inUse, ...decision }: Decision & Meant,
): Promise<Skill> {
  const versions = await procedural.versions(skill.scope, skill.name);
  const done = versions.find(({ history = [] }) => history.some((change) => isOf(change, decision)));
  if (done !== undefined && done.status !== 'active') return done;
  const target = done ?? targetOf(versions, skill, { toVersion, inUse });
  const others = versions.filter(({ status, version }) => status === 'active' && version !== target.version);
  const away = others.map((version) =>
    moveOf(version, { ...decision, to: 'deprecated', from: ['active'], reason: awayReason(decision, target) }),
  );
  const [active] = await procedural.move([moveOf(target, { ...decision, to: 'active', from: ['active', 'deprecated'] }), ...away]);
  return active ?? target;
}

interface Meant {
  readonly toVersion?: number | undefined;
  readonly inUse?: number | undefined;
}

function targetOf(versions: readonly Skill[], { name }: Skill, { toVersion, inUse }: Meant): Skill {
  const active = versions.find(({ status }) => status === 'active');
  if (inUse !== undefined && active !== undefined && active.version !== inUse) throw otherInUse(active, inUse);
  const present = active ?? versions.find(wasActive);
  const target =
    toVersion === undefined
      ? versions.find((version) => version.version < (present?.version ?? 0) && isOnceUsed(version))
      : versions.find(({ version }) => version === toVersion);
  if (target === undefined)
    throw noVersion(
      name,
      toVersion,
      versions.filter(({ version, status }) => status === 'archived' && version < (present?.version ?? Infinity)),
    );
  if (!wasActive(target) || target.status === 'archived')
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `version ${target.version} of skill "${name}" is ${target.status} and can't be rolled back to; only a version that was in use can`,
      { field: 'to_version' },
    );
  return target;
}

const otherInUse = ({ name, version }: Skill, meant: number) =>
  new EtudeError(
    'ABORTED',
    `version ${version} of skill "${name}" is in use by now, and not ${meant} as when this was asked for first; look at it, and ask again with a new request_id`,
    { field: 'name' },
  );
const isOf = ({ to, by, at, reason }: SkillChange, decision: Decision) =>
  to === 'active' && by === decision.by && at === decision.at && reason === decision.reason;
const isOnceUsed = (skill: Skill) => wasActive(skill) && (skill.status === 'deprecated' || skill.status === 'active');
const awayReason = ({ reason }: Decision, { version }: Skill) => `rolled back to version ${version}${reason === '' ? '' : `: ${reason}`}`;

function noVersion(name: string, version: number | undefined, archived: readonly Skill[]): EtudeError {
  if (version !== undefined) return new EtudeError('NOT_FOUND', `Skill "${name}" has no version ${version}.`, { field: 'to_version' });
  const once = archived.filter(wasActive).map((one) => one.version);
  const why =
    once.length === 0
      ? `no earlier version of skill "${name}" was in use; name one with to_version`
      : `earlier versions of skill "${name}" that were in use are archived (${once.join(', ')}); restore one of them first`;
  return new EtudeError('FAILED_PRECONDITION', why, { field: 'to_version' });
}
