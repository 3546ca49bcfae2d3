import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency, SkillStatus } from '@etude/contracts/skill-proof';
import type { AgentSettingsReader } from '../../ports/agent-settings.js';
import type { ProceduralMemory, SkillKey } from '../../ports/memory.js';
import type { ProofChecker, ProofSigner } from '../../ports/verification.js';
import { activeVersion, approveSkill, isVerifiedAgainst, recordVerification, rollbackSkill, settleVerified } from '../life/decisions.js';
import { noSuchSkill, wasRejectedByPerson } from '../life/skill-life.js';
import { refusalOf } from '../life/call-graph.js';
import { versionOfKey } from '../life/find-skill.js';
import { confidenceOf, isProven, signProof } from './proof.js';
import { withCarriedTests } from '../life/carried-over.js';
import { canonicalJson, skillDigest } from '../content-digest.js';
import { activeDependents, gatherGround } from './keep-what-worked.js';
import { type Verification, type VerificationDeps, verificationOf, verifySkill } from './verify-skill.js';
import type { Clock } from '../../ports/clock.js';
import { dependencyOn } from './bundle-code.js';

export interface AdmissionDeps extends Omit<CheckDeps, 'round'>, ReverificationDeps {
  readonly settings: AgentSettingsReader;
  readonly signer: ProofSigner;
}

/** The skill version to admit. A new `round` verifies it again, even if its content was verified before. */
export type Admission = SkillKey & { readonly round?: number | undefined };

/**
 * Brings a skill into use: verifies it in a sandbox, signs the evidence, and approves it by its agent's settings. If it fails verification, it is
 * rejected with the reason. If it comes into use, its callers are verified with it. A repeated call continues where the last call stopped.
 *
 * @throws EtudeError NOT_FOUND, ABORTED (the version has another digest), SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, MEMORY_UNAVAILABLE (also
 *   if another decision came first; a retry starts from that decision), MEMORY_FULL, QUEUE_UNAVAILABLE; an AbortError when `signal` aborts
 */
export async function admitSkill(key: Admission, deps: AdmissionDeps, signal: AbortSignal): Promise<Skill> {
  const skill = await versionOfKey(deps.procedural, key);
  if (skill === null) throw noSuchSkill(key);
  if (skill.digest !== key.digest) {
    const changed = `version ${key.version} of skill "${key.name}" has digest ${skill.digest}, not the requested ${key.digest}; send a new request`;
    throw new EtudeError('ABORTED', changed);
  }
  try {
    const replaced = await activeVersion(deps.procedural, skill);
    const isOutdated = skill.status === 'verified' && !isVerifiedAgainst(skill, replaced);
    const verified = isOutdated || isToVerify(skill, key, deps) ? await verifiedNow(skill, key, deps, signal) : skill;
    return await settle(verified, replaced, deps);
  } catch (error) {
    if (errorCode(error) !== 'ABORTED') throw error;
    const overtaken = `version ${key.version} of skill "${key.name}" was changed by another decision meanwhile; the verification is retried`;
    throw new EtudeError('MEMORY_UNAVAILABLE', `${overtaken}: ${(error as Error).message}`, {}, { cause: error });
  }
}

/** A skill in use or in review is verified again for a new `round`, and if its proof isn't signed with a known key. */
function isToVerify(skill: Skill, { round }: Admission, { checker }: AdmissionDeps): boolean {
  if (skill.status === 'candidate') return true;
  if (skill.status !== 'active' && skill.status !== 'pending_review') return false;
  return round !== undefined || !isProven(skill, checker);
}

async function verifiedNow(skill: Skill, { round }: Admission, deps: AdmissionDeps, signal: AbortSignal): Promise<Skill> {
  const { procedural, clock, signer } = deps;
  const found = await examineSkill(skill, round === undefined ? deps : { ...deps, round }, signal);
  signal.throwIfAborted();
  const proof = found.passed ? { proof: signProof(skill, found.found, signer, clock.now()) } : {};
  return recordVerification(procedural, skill, { ...found, ...proof }, clock.now());
}

async function settle(skill: Skill, replaced: Skill | null, deps: AdmissionDeps): Promise<Skill> {
  const { procedural, clock } = deps;
  const { settings } = await deps.settings.get(skill.scope.tenant, skill.scope.agent);
  const settled = await settleVerified(procedural, skill, settings, clock.now());
  const admitted = wasRejectedByPerson(settled) ? settled : await carryApprovalOver(settled, replaced, deps);
  await reverifyDependents(admitted, deps);
  return admitted;
}

/** The status of the stored skill with this name and digest. null while its verification or approval goes on. */
export async function settledStatus(
  procedural: ProceduralMemory,
  { scope, name, digest }: Pick<Skill, 'scope' | 'name' | 'digest'>,
): Promise<SkillStatus | null> {
  const skill = (await procedural.versions(scope, name)).find((one) => one.digest === digest);
  return skill === undefined || skill.status === 'candidate' || skill.status === 'verified' ? null : skill.status;
}

interface CheckDeps extends Omit<VerificationDeps, 'ground'> {
  readonly procedural: ProceduralMemory;
  readonly checker: ProofChecker;
}

/** The result of a verification. `confidence` is from 0 to 1. It is 0 if the skill did not pass. */
type SkillCheck = Verification & { readonly digest: string; readonly confidence: number };

/** Drafts have a round of their own, so that a later verification doesn't reuse a draft's executions. */
const ROUND_OF_DRAFTS = 0;

/** The verification that a draft would get if it were registered now. Nothing is stored. @throws as `examineSkill` */
export async function checkSkill(draft: Skill, deps: Omit<CheckDeps, 'round'>, signal: AbortSignal): Promise<SkillCheck> {
  const versions = await deps.procedural.versions(draft.scope, draft.name);
  const next = { ...draft, version: (versions[0]?.version ?? 0) + 1 };
  return examineSkill(withCarriedTests(next, versions), { ...deps, round: ROUND_OF_DRAFTS }, signal);
}

/**
 * Verifies a version and stores nothing. A repeated call within an hour, with the same `attempt` and `round`, reuses the executions.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, MEMORY_UNAVAILABLE (retryable); an AbortError when `signal` aborts
 */
export async function examineSkill(version: Skill, deps: CheckDeps, signal: AbortSignal): Promise<SkillCheck> {
  const digest = skillDigest(version);
  const skill = { ...version, digest };
  const { procedural, checker } = deps;
  // If a callee can't be loaded, the fault is the skill's, not the system's.
  const ground = await gatherGround(skill, procedural, (needed) => isProven(needed, checker)).catch(refusalOf);
  const verification =
    typeof ground === 'string' ? verificationOf([{ reason: ground }], null) : await verifySkill(skill, { ...deps, ground }, signal);
  return { ...verification, digest, confidence: verification.passed ? confidenceOf(verification.found) : 0 };
}

interface ReverificationDeps {
  readonly procedural: ProceduralMemory;
  readonly clock: Clock;
  /** Resolves once the request is durable. A repeated request for the same skill changes nothing. */
  readonly requestVerification: (skill: Skill) => Promise<void>;
}

/**
 * Stores a new version of each active caller, pinned to this newly active skill and to the active versions of its other callees. The new version is
 * verified as usual. If an earlier version has these pins, it is activated again instead. A repeated call changes nothing.
 *
 * The recursion ends, because no skill calls itself at any depth, and equal pins never give a second version.
 * @throws EtudeError MEMORY_UNAVAILABLE, QUEUE_UNAVAILABLE
 */
export async function reverifyDependents(skill: Skill, deps: ReverificationDeps): Promise<readonly Skill[]> {
  if (skill.status !== 'active') return [];
  const made: Skill[] = [];
  for (const dependent of await activeDependents(skill, deps.procedural)) {
    const version = await repinned(dependent, deps);
    if (version === null) continue;
    made.push(version);
    if (version.status === 'candidate') await deps.requestVerification(version);
    if (version.status === 'deprecated') await useAgain(version, dependent, deps);
  }
  return made;
}

/** After the rollback of a callee, activates the caller's version that was verified with it. */
async function useAgain(version: Skill, dependent: Skill, deps: ReverificationDeps): Promise<void> {
  if (!onlyPinsDiffer(version, dependent) || version.proof === undefined) return;
  const called = (version.dependencies ?? []).map((pin) => `${pin.name}@${pin.version}`).join(', ');
  const decision = { by: 'verification', reason: `calls ${called} again`, at: deps.clock.now() };
  await reverifyDependents(await rollbackSkill(deps.procedural, dependent, { ...decision, toVersion: version.version }), deps);
}

async function repinned(dependent: Skill, { procedural, clock }: ReverificationDeps): Promise<Skill | null> {
  const dependencies = await Promise.all((dependent.dependencies ?? []).map((pin) => presentPin(pin, procedural)));
  const at = clock.now();
  const counts = { executionCount: 0, successRate: 1 };
  const next: Skill = { ...dependent, ...counts, dependencies, status: 'candidate', evidence: [], createdAt: at, updatedAt: at };
  if (skillDigest(next) === dependent.digest) return null;
  const changed = dependencies.filter((pin, index) => pin.version !== dependent.dependencies?.[index]?.version);
  const statusReason = `calls ${changed.map(({ name, version }) => `${name}@${version}`).join(', ')}`;
  return procedural.store({ ...next, statusReason, digest: skillDigest(next) }, { by: 'verification', isReviewed: true, words: 'kept' });
}

async function presentPin(pin: SkillDependency, procedural: ProceduralMemory): Promise<SkillDependency> {
  const { tenant, agent, user, name } = pin;
  const [active] = await procedural.versions({ tenant, agent, user }, name, 'active');
  return active === undefined ? pin : dependencyOn(active);
}

/** Approves a version in review that differs from the version in use only by its pins. Its code and its callees were approved before. */
async function carryApprovalOver(skill: Skill, replaced: Skill | null, deps: ReverificationDeps): Promise<Skill> {
  const { procedural, clock } = deps;
  if (skill.status !== 'pending_review' || replaced === null || replaced.status !== 'active') return skill;
  if (!onlyPinsDiffer(skill, replaced) || findingsOf(skill) !== findingsOf(replaced)) return skill;
  const pins = await Promise.all((skill.dependencies ?? []).map((pin) => presentPin(pin, procedural)));
  if (canonicalJson(pins) !== canonicalJson(skill.dependencies)) return skill;
  const reason = `approval of version ${replaced.version} carries over: only the versions of its callees differ`;
  return approveSkill(procedural, skill, { by: 'verification', reason, at: clock.now(), digest: skill.digest });
}

function onlyPinsDiffer(skill: Skill, other: Skill): boolean {
  return skill.digest !== other.digest && withoutPins(skill) === withoutPins(other);
}

function withoutPins({ dependencies = [], ...content }: Skill): string {
  const { code, entryPoint, kind, description, parameters, tests, heldOut, packages, files, untrusted } = content;
  const called = dependencies.map(({ tenant, agent, name }) => ({ tenant, agent, name }));
  return canonicalJson({ code, entryPoint, kind, description, parameters, tests, heldOut, packages, files, untrusted, called });
}

const findingsOf = ({ proof }: Skill) => canonicalJson(proof?.findings ?? []);
