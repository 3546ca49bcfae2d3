import { SKILL_STATUSES, type SkillChange, type SkillProof, type SkillStatus } from '@etude/contracts/skill-proof';
import { EtudeError } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import type { SkillKey, SkillMove, StoreSkillOptions } from '../../ports/memory.js';
import type { ProofChecker } from '../../ports/verification.js';
import { canonicalJson, isInWords, proofText, skillDigest } from '../content-digest.js';
import { withMarks } from '../../trust/sources.js';
import { absorbed } from './usage.js';

/** Later versions don't build on skills in these statuses. Such skills don't count towards the limit of names. */
export const GONE: ReadonlySet<SkillStatus> = new Set(['rejected', 'archived']);

export const NOT_GONE: readonly SkillStatus[] = SKILL_STATUSES.filter((status) => !GONE.has(status));

/** Skills in these statuses run, or may run after verification or approval. */
export const LIVING: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'pending_review', 'active']);

/** Skills in these statuses run or wait for approval, so their callees must stay callable. */
export const IN_USE: ReadonlySet<SkillStatus> = new Set(['active', 'pending_review']);

/** Pinned callers can call skills in these statuses. */
export const CALLABLE: ReadonlySet<SkillStatus> = new Set(['active', 'deprecated']);

/**
 * The statuses that a skill may move to, by its status. Nothing else changes a status.
 *
 * A status may move to itself. `active`, `pending_review` and `verified` do so when a new verification gives a new proof. `deprecated` does so when
 * its replacement is named, and `archived` when its proof is removed. `archived` returns to `pending_review` or `rejected` only if the skill had that
 * status before. A move to `candidate` drops the proof, and the skill is verified anew.
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

/** An archived skill moves to one of these statuses only if it had that status before. */
const UNDONE: ReadonlySet<SkillStatus> = new Set(['pending_review', 'rejected']);
export const VERIFIER = 'verification';

/** A skill reaches these statuses only with a proof for exactly its content. */
export const PROVEN: ReadonlySet<SkillStatus> = new Set(['verified', 'pending_review', 'active']);

/** Whether the proof covers exactly the skill's content, whose digest is computed again. The signature is not checked. */
export function isProofOf(skill: Skill, proof: SkillProof | undefined): boolean {
  return proof !== undefined && proof.digest === skill.digest && proof.digest === skillDigest(skill);
}

type Given = 'name' | 'scope' | 'kind' | 'description' | 'code' | 'entryPoint' | 'tests' | 'sources' | 'model' | 'scripted';

/** A new candidate, without evidence or uses. @param given `at`: ms since 1970 */
export function newCandidate({ at, ...given }: Pick<Skill, Given> & Partial<Skill> & { readonly at: number }): Skill {
  const skill: Omit<Skill, 'digest'> = {
    parameters: [],
    tags: [],
    cues: [],
    fingerprints: [],
    statusReason: '',
    ...given,
    version: 1,
    status: 'candidate',
    evidence: [],
    executionCount: 0,
    successRate: 1,
    createdAt: at,
    updatedAt: at,
  };
  return { ...skill, digest: skillDigest(skill) };
}

/** A skill as it is first stored: a candidate without proof or history, with the marks of its sources. The author's other claims are ignored. */
export function newSkill(given: Skill, version: number, { by, setAside }: Pick<StoreSkillOptions, 'by' | 'setAside'> = {}): Skill {
  const { proof: _proof, contract: _contract, usage: _usage, replacedBy: _replacedBy, ...skill } = structuredClone(given);
  const origin = skill.origin ?? 'rollout';
  const who = { at: skill.createdAt, by: by ?? origin };
  const stored: SkillChange = { ...who, from: null, to: 'candidate', reason: skill.statusReason };
  const made: Skill = { ...withMarks(skill), version, status: 'candidate', evidence: [], digest: skillDigest(skill), history: [stored] };
  return setAside === undefined ? made : changedBy(made, { ...who, key: keyOf(made), to: 'archived', reason: setAside });
}

/**
 * The skill after a move that `TRANSITIONS` allows. If the move took place before, the skill is returned unchanged.
 *
 * @param checker checks the signatures of proofs. If null, signatures are checked only when a skill is run
 * @throws EtudeError ABORTED for another status or content than the move expects; FAILED_PRECONDITION if a proof or a review is missing
 */
export function movedSkill(skill: Skill, move: SkillMove, checker: ProofChecker | null = null): Skill {
  requireDigest(skill, move.key);
  if (tookPlace(skill, move)) return skill;
  requireStatus(skill, move);
  const moved = changedBy(move.absorbs === undefined ? skill : absorbed(skill, move.absorbs), move);
  if (PROVEN.has(move.to)) requireProof(skill, moved, checker);
  if (move.to === 'active' && isFirstUse(skill)) requireTrusted(moved);
  return moved;
}

/** Whether the skill comes into use for the first time and without a review. A skill that was in use before was approved at that time. */
function isFirstUse(skill: Skill): boolean {
  return skill.status === 'verified' || (skill.status !== 'pending_review' && !wasActive(skill));
}

/** The status before the last archiving. null if the history has no archiving. */
export function wasBefore({ history = [] }: Skill): SkillStatus | null {
  return history.findLast(({ from, to }) => to === 'archived' && from !== 'archived')?.from ?? null;
}

export function wasActive({ history = [] }: Skill): boolean {
  return history.some(({ from, to }) => from === 'active' || to === 'active');
}

/** Whether a procedure in words has been in use since it was told, without any decision about it. */
export function wasOnlyTold(skill: Skill): boolean {
  return skill.status === 'active' && isInWords(skill) && (skill.history ?? []).length <= 1;
}

/** Whether this move is in the history already, or another move had the same effect. */
function tookPlace({ status, history = [], proof, replacedBy }: Skill, move: SkillMove): boolean {
  const isRepeat = history.some(({ at, by, to, reason }) => at === move.at && by === move.by && to === move.to && reason === move.reason);
  if (isRepeat || move.absorbs !== undefined) return isRepeat;
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
  const message = `skill ${nameOf(key)} has digest ${skill.digest}, not ${key.digest}; read the skill again, then decide again`;
  throw new EtudeError('ABORTED', message);
}

function requireStatus(skill: Skill, { key, to, from = [skill.status] }: SkillMove): void {
  const isUndo = skill.status !== 'archived' || !UNDONE.has(to) || wasBefore(skill) === to;
  if (TRANSITIONS[skill.status].includes(to) && from.includes(skill.status) && isUndo) return;
  const expected = from.includes(skill.status) ? '' : ` instead of ${from.join(' or ')}`;
  const message = `skill ${nameOf(key)} is ${skill.status}${expected}, so it can't become ${to}; read the skill again, then decide again`;
  throw new EtudeError('ABORTED', message);
}

/** Requires a proof. Only a procedure in words may become active again without one if it is unchanged, because it has no code. */
function requireProof(before: Skill, moved: Skill, checker: ProofChecker | null): void {
  const { proof } = moved;
  if (isProofOf(moved, proof) && (checker === null || isSigned(proof, checker))) return;
  if (moved.proof === undefined && isInWords(moved) && wasActive(before) && before.digest === skillDigest(moved)) return;
  const message = `skill ${nameOf(moved)} has no proof for its content (digest ${skillDigest(moved)}), so it can't become ${moved.status}; verify it again`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'digest' });
}

function isSigned(proof: SkillProof | undefined, checker: ProofChecker): boolean {
  return proof !== undefined && checker.isSigned(proofText(proof), proof.keyId, proof.signature);
}

function requireTrusted(moved: Skill): void {
  const reasons = reasonsForReview(moved);
  if (reasons.length === 0) return;
  throw new EtudeError('FAILED_PRECONDITION', `skill ${nameOf(moved)} has to be reviewed before it is used: ${reasons.join('; ')}`);
}

/** The reasons why only a person may approve the skill. Empty if approval may be automatic. */
export function reasonsForReview(skill: Pick<Skill, 'untrusted' | 'proof' | 'history'>): readonly string[] {
  const { untrusted = [], proof } = skill;
  const errors = (proof?.findings ?? []).filter(({ severity }) => severity === 'error');
  const rejected = wasRejectedByPerson(skill) ? ['somebody rejected it'] : [];
  return [...untrusted, ...rejected, ...errors.map(({ analyser, rule, message }) => `${analyser} ${rule}: ${message}`)];
}

/** Whether the last decision of a person was a rejection. Verification does not overrule a person. */
export function wasRejectedByPerson({ history = [] }: Pick<Skill, 'history'>): boolean {
  const said = history.findLast(({ by, from, to }) => by !== VERIFIER && from !== 'archived' && (to === 'rejected' || to === 'active'));
  return said?.to === 'rejected';
}

export interface Decision {
  /** Name of a key, or of a service such as "verification". */
  readonly by: string;
  readonly reason: string;
  /** ms since 1970 */
  readonly at: number;
}

/** A move of exactly this version and content. It starts from the skill's present status, unless `more.from` names other statuses. */
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
  return new EtudeError('NOT_FOUND', `there is no skill ${name}@${version}; list the skills to see the existing versions`);
}

export function nameOf({ name, version }: Pick<SkillKey, 'name' | 'version'>): string {
  return `${name}@${version}`;
}

export function isSameOwner(a: Scope, b: Scope): boolean {
  return a.tenant === b.tenant && a.agent === b.agent && a.user === b.user;
}

/** @param versions all of the skill's name and owner, after the moves. @throws EtudeError ABORTED if another version is active too */
export function requireOnlyActive(skill: Skill, versions: readonly Skill[]): void {
  const other = versions.find(({ status, version }) => status === 'active' && version !== skill.version);
  if (other === undefined) return;
  const message = `version ${other.version} of skill "${skill.name}" became active meanwhile, so version ${skill.version} did not; read the skill again, then decide again`;
  throw new EtudeError('ABORTED', message, { field: 'version', metadata: { active_version: String(other.version) } });
}

/** The version that stays active, which is the last activated one. Only a store without transactions can hold several active versions. */
export function lastActivated(active: readonly Skill[]): Skill | undefined {
  return active.toSorted((a, b) => activatedAt(b) - activatedAt(a) || b.version - a.version)[0];
}

export const replacedReason = (version: number): string => `replaced by version ${version}`;

/** Time when the skill was last activated, in ms since 1970. 0 if it never was. */
export function activatedAt({ history = [] }: Skill): number {
  return history.findLast(({ from, to }) => to === 'active' && from !== 'active')?.at ?? 0;
}
