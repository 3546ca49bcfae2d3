import { SKILL_STATUSES, type SkillChange, type SkillProof, type SkillStatus } from '@etude/contracts/skill-proof';
import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { StoreSkillOptions } from '../../ports/memory.js';
import type { ProofChecker } from '../../ports/proof-signer.js';
import type { SkillKey, SkillMove } from '../../ports/skill-registry.js';
import { canonicalJson, isInWords, proofText, skillDigest } from '../content-digest.js';
import { withMarks } from '../../trust/sources.js';

/** Nobody goes on from these versions unless somebody says so, and they take up no room. */
export const GONE: ReadonlySet<SkillStatus> = new Set(['rejected', 'archived']);

/** What takes up room. */
export const NOT_GONE: readonly SkillStatus[] = SKILL_STATUSES.filter((status) => !GONE.has(status));

/** What may run, or may once it is verified or approved, without being stored again. */
export const LIVING: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'pending_review', 'active']);

/** What may run, or is to be approved: what it calls has to stay as it is. */
export const IN_USE: ReadonlySet<SkillStatus> = new Set(['active', 'pending_review']);

/** What another skill may be pinned to. */
export const CALLABLE: ReadonlySet<SkillStatus> = new Set(['active', 'deprecated']);

/**
 * What may become of a skill, by what it is. Nothing else changes a status.
 *
 * `active` to `active` is verification again: the skill stays in use and gets its new proof, or is deprecated where there is none; so
 * it is for what waits for review, and for what was verified against a version that is in use no more. `deprecated` to `deprecated` names what is used in its place; `archived` to `archived` takes its
 * proof away. What nobody uses or reviews is verified again as a candidate, without the proof that it had. `archived` to
 * `pending_review` or `rejected` undoes archiving: only where it was that before.
 */
export const TRANSITIONS: Readonly<Record<SkillStatus, readonly SkillStatus[]>> = {
  candidate: ['verified', 'rejected', 'archived'],
  verified: ['verified', 'active', 'pending_review', 'rejected', 'archived'],
  pending_review: ['active', 'pending_review', 'rejected', 'archived'],
  active: ['active', 'deprecated', 'archived'],
  deprecated: ['active', 'deprecated', 'candidate', 'archived'],
  archived: ['active', 'deprecated', 'candidate', 'archived', 'pending_review', 'rejected'],
  rejected: ['candidate', 'archived'],
};

/** Reached from being archived only where it was so before. */
const UNDONE: ReadonlySet<SkillStatus> = new Set(['pending_review', 'rejected']);
/** Name in the history of what verification decides. */
export const VERIFIER = 'verification';

/** Reached only with a proof for exactly the content. */
const PROVEN: ReadonlySet<SkillStatus> = new Set(['verified', 'pending_review', 'active']);

/** Statuses from which this one may be reached. */
export function sourcesOf(to: SkillStatus): SkillStatus[] {
  return (Object.keys(TRANSITIONS) as SkillStatus[]).filter((from) => TRANSITIONS[from].includes(to));
}

/** Whether this is the proof for exactly what the skill holds, whatever its record says. Not whether its signature is good. */
export function isProofOf(skill: Skill, proof: SkillProof | undefined): boolean {
  return proof !== undefined && proof.digest === skill.digest && proof.digest === skillDigest(skill);
}

/**
 * A skill as it is first stored, whatever its author says of it: a candidate that nothing is known of, but what its sources say against it.
 *
 * @param options.by who stored it; where it came from by default
 * @param options.setAside why it is archived at once
 */
export function newSkill(given: Skill, version: number, { by, setAside }: Pick<StoreSkillOptions, 'by' | 'setAside'> = {}): Skill {
  const { proof: _proof, contract: _contract, usage: _usage, replacedBy: _replacedBy, ...skill } = structuredClone(given);
  const origin = skill.origin ?? 'rollout';
  const who = { at: skill.createdAt, by: by ?? origin };
  const stored: SkillChange = { ...who, from: null, to: 'candidate', reason: skill.statusReason };
  const made: Skill = { ...withMarks(skill), version, status: 'candidate', evidence: [], digest: skillDigest(skill), history: [stored] };
  return setAside === undefined ? made : changedBy(made, { ...who, key: keyOf(made), to: 'archived', reason: setAside });
}

/**
 * A skill after a move by the table; the same skill where the move took place before.
 *
 * @param checker believes signatures under proofs; null: who runs a skill looks at them
 * @throws EtudeError ABORTED where it is not what was looked at, FAILED_PRECONDITION where it needs a proof that there is not
 */
export function movedSkill(skill: Skill, move: SkillMove, checker: ProofChecker | null = null): Skill {
  requireDigest(skill, move.key);
  if (tookPlace(skill, move)) return skill;
  requireStatus(skill, move);
  const moved = changedBy(skill, move);
  if (PROVEN.has(move.to)) requireProof(skill, moved, checker);
  if (move.to === 'active' && isFirstUse(skill)) requireTrusted(moved);
  return moved;
}

/** Of what waits for review a person says yes; what was in use before comes back as it was. */
function isFirstUse(skill: Skill): boolean {
  return skill.status === 'verified' || (skill.status !== 'pending_review' && !wasActive(skill));
}

/** What an archived one was before; null where nobody wrote it down. */
export function wasBefore({ history = [] }: Skill): SkillStatus | null {
  return history.findLast(({ from, to }) => to === 'archived' && from !== 'archived')?.from ?? null;
}

/** Whether it was in use before. Skills that were stored before there was a history say so only by what they are. */
export function wasActive({ status, history = [] }: Skill): boolean {
  if (history.length === 0) return status === 'active' || status === 'deprecated';
  return history.some(({ from, to }) => from === 'active' || to === 'active');
}

/** In use since it was told; nobody decided anything on it. */
export function wasOnlyTold(skill: Skill): boolean {
  return skill.status === 'active' && isInWords(skill) && (skill.history ?? []).length <= 1;
}

/** A repeat, by who wanted it and when; or somebody else wanted the same and was faster. */
function tookPlace({ status, history = [], proof, replacedBy }: Skill, move: SkillMove): boolean {
  const isRepeat = history.some(({ at, by, to, reason }) => at === move.at && by === move.by && to === move.to && reason === move.reason);
  if (isRepeat) return true;
  const hasProof = move.proof === undefined || canonicalJson(move.proof) === canonicalJson(proof);
  const hasName = move.replacedBy === undefined || (move.replacedBy ?? undefined) === replacedBy;
  return status === move.to && hasProof && hasName;
}

function changedBy(skill: Skill, { to, by, reason, at, evidence = [], contract, proof, replacedBy }: SkillMove): Skill {
  const { proof: oldProof, contract: oldContract, replacedBy: oldName, history = [], ...kept } = skill;
  const isAnew = to === 'candidate';
  const nextProof = isAnew || proof === null ? undefined : (proof ?? oldProof);
  const nextContract = isAnew ? undefined : (contract ?? oldContract);
  const name = to === 'active' || isAnew ? null : replacedBy === undefined ? oldName : replacedBy;
  return {
    ...kept,
    status: to,
    statusReason: reason,
    evidence: isAnew ? [] : [...new Set([...skill.evidence, ...evidence])],
    history: [...history, { at, by, from: skill.status, to, reason }],
    updatedAt: Math.max(skill.updatedAt, at),
    ...(nextProof === undefined ? {} : { proof: nextProof }),
    ...(nextContract === undefined ? {} : { contract: nextContract }),
    ...(name === null || name === undefined ? {} : { replacedBy: name }),
  };
}

function requireDigest(skill: Skill, key: SkillKey): void {
  if (skill.digest === key.digest) return;
  throw new EtudeError('ABORTED', `skill ${nameOf(key)} has digest ${skill.digest}, not ${key.digest}; read it again and decide again`);
}

function requireStatus(skill: Skill, { key, to, from }: SkillMove): void {
  const allowed = sourcesOf(to).filter((status) => from === undefined || from.includes(status));
  const isUndo = skill.status !== 'archived' || !UNDONE.has(to) || wasBefore(skill) === to;
  if (allowed.includes(skill.status) && isUndo) return;
  throw new EtudeError(
    'ABORTED',
    `skill ${nameOf(key)} is ${skill.status}, not ${allowed.join(' or ')}, from which it could become ${to}; read it again and decide again`,
  );
}

/** Words that were told and never verified may come back as they were: there is nothing in them to run. */
function requireProof(before: Skill, moved: Skill, checker: ProofChecker | null): void {
  const { proof } = moved;
  if (isProofOf(moved, proof) && (checker === null || isSigned(proof, checker))) return;
  if (moved.proof === undefined && isInWords(moved) && wasActive(before) && before.digest === skillDigest(moved)) return;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `skill ${nameOf(moved)} has no proof for its content (digest ${skillDigest(moved)}), so it can't become ${moved.status}; verify it again`,
    { field: 'digest' },
  );
}

function isSigned(proof: SkillProof | undefined, checker: ProofChecker): boolean {
  return proof !== undefined && checker.isSigned(proofText(proof), proof.keyId, proof.signature);
}

function requireTrusted(moved: Skill): void {
  const reasons = reasonsForReview(moved);
  if (reasons.length === 0) return;
  throw new EtudeError('FAILED_PRECONDITION', `skill ${nameOf(moved)} has to be reviewed before it is used: ${reasons.join('; ')}`);
}

/** Why nobody but a person may approve it; empty where there is nothing against it. */
export function reasonsForReview(skill: Pick<Skill, 'untrusted' | 'proof' | 'history'>): readonly string[] {
  const { untrusted = [], proof } = skill;
  const errors = (proof?.findings ?? []).filter(({ severity }) => severity === 'error');
  const rejected = wasRejectedByPerson(skill) ? ['somebody rejected it'] : [];
  return [...untrusted, ...rejected, ...errors.map(({ analyser, rule, message }) => `${analyser} ${rule}: ${message}`)];
}

/** Whether a person's last word on it was no. Verification takes nobody's word back. */
export function wasRejectedByPerson({ history = [] }: Pick<Skill, 'history'>): boolean {
  const said = history.findLast(({ by, from, to }) => by !== VERIFIER && from !== 'archived' && (to === 'rejected' || to === 'active'));
  return said?.to === 'rejected';
}

/** Somebody's decision about a skill. */
export interface Decision {
  /** Name of a key, or of a service such as "verification". */
  readonly by: string;
  readonly reason: string;
  /** ms since 1970 */
  readonly at: number;
}

/** A move of exactly this version with this content, out of the status in which it was seen unless others are named. */
export function moveOf(
  skill: Skill,
  to: SkillStatus,
  { by, reason, at }: Decision,
  more: Partial<Omit<SkillMove, 'key' | 'to' | keyof Decision>> = {},
): SkillMove {
  return { key: keyOf(skill), to, by, reason, at, from: [skill.status], ...more };
}

export function keyOf({ scope: { tenant, agent, user }, name, version, digest }: Skill): SkillKey {
  return { tenant, agent, user, name, version, digest };
}

export function noSuchSkill({ name, version }: Pick<SkillKey, 'name' | 'version'>): EtudeError {
  return new EtudeError('NOT_FOUND', `there is no skill ${name}@${version}; list the skills to see which there are`);
}

function nameOf({ name, version }: Pick<SkillKey, 'name' | 'version'>): string {
  return `${name}@${version}`;
}

/** Whether these are versions of one skill of one owner, of which at most one is in use. */
export function isVersionOf(a: Skill, b: Skill): boolean {
  const [one, other] = [a.scope, b.scope];
  return a.name === b.name && one.tenant === other.tenant && one.agent === other.agent && one.user === other.user;
}

/**
 * @param skill becomes active
 * @param versions of the same name, as they will be then
 * @throws EtudeError ABORTED where another version of the same owner stays active beside it
 */
export function requireOnlyActive(skill: Skill, versions: readonly Skill[]): void {
  const other = versions.find((version) => version.status === 'active' && version.version !== skill.version && isVersionOf(version, skill));
  if (other !== undefined) throw otherActive(skill, other);
}

export function otherActive({ name, version }: Skill, other: Skill): EtudeError {
  return new EtudeError(
    'ABORTED',
    `version ${other.version} of skill "${name}" became active meanwhile, so version ${version} did not; read it again and decide again`,
    { field: 'version', metadata: { active_version: String(other.version) } },
  );
}

/** Of several active versions, which only a store without transactions can have, the one that stays: the last that was taken into use. */
export function lastActivated(active: readonly Skill[]): Skill | undefined {
  return active.toSorted((a, b) => activatedAt(b) - activatedAt(a) || b.version - a.version)[0];
}

/** When it was taken into use last; ms since 1970. */
export function activatedAt({ history = [], version }: Skill): number {
  return history.findLast(({ from, to }) => to === 'active' && from !== 'active')?.at ?? version / Number.MAX_SAFE_INTEGER;
}
