import { EtudeError, errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { AgentSettingsReader } from '../../ports/agent-settings.js';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { ProofChecker, ProofSigner } from '../../ports/proof-signer.js';
import type { SkillKey } from '../../ports/skill-registry.js';
import { activeVersion, isVerifiedAgainst, recordVerification, settleVerified } from '../life/decisions.js';
import { noSuchSkill, wasRejectedByPerson } from '../life/skill-life.js';
import { refusalOf } from '../life/call-graph.js';
import { versionOfKey } from '../life/find-skill.js';
import { isProven, signProof, confidenceOf } from './proof.js';
import { carryApprovalOver, type ReverificationDeps, reverifyDependents } from './reverify-dependents.js';
import { withCarriedTests } from '../life/known-version.js';
import { skillDigest } from '../content-digest.js';
import { gatherGround } from './keep-what-worked.js';
import { type Verification, type VerificationDeps, verificationOf, verifySkill } from './verify-skill.js';

export interface AdmissionDeps extends Omit<CheckDeps, 'round'>, ReverificationDeps {
  /** The agent's settings say who approves. */
  readonly settings: AgentSettingsReader;
  readonly signer: ProofSigner;
}

/** `round` asks for a new verification, even of content that was verified before. */
export type Admission = SkillKey & { readonly round?: number | undefined };

/**
 * Brings a skill into use: verifies it in a sandbox, signs the evidence, and approves it by its agent's settings. A failed verification
 * rejects it with the reason. Its callers are then verified with it. A repeated call continues where the last one stopped.
 *
 * A skill in use or waiting for review is verified again for a new `round`. A skill without a signed proof, or with a proof of an unknown
 * key, is verified again too.
 * @throws EtudeError NOT_FOUND, ABORTED (the version has another digest), SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, MEMORY_UNAVAILABLE (also
 *   where another decision came first; a retry starts from it), MEMORY_FULL, QUEUE_UNAVAILABLE; an AbortError when `signal` aborts
 */
export async function admitSkill(key: Admission, deps: AdmissionDeps, signal: AbortSignal): Promise<Skill> {
  const skill = await versionOfKey(deps.procedural, key);
  if (skill === null) throw noSuchSkill(key);
  if (skill.digest !== key.digest) {
    const changed = `version ${key.version} of skill "${key.name}" has digest ${skill.digest}; the request is for digest ${key.digest}`;
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

/** Approves the skill as the settings say, then repins its callers. */
async function settle(skill: Skill, replaced: Skill | null, deps: AdmissionDeps): Promise<Skill> {
  const { procedural, clock } = deps;
  const { settings } = await deps.settings.get(skill.scope.tenant, skill.scope.agent);
  const settled = await settleVerified(procedural, skill, settings, clock.now());
  const admitted = wasRejectedByPerson(settled) ? settled : await carryApprovalOver(settled, replaced, deps);
  await reverifyDependents(admitted, deps);
  return admitted;
}

/** The status of the stored skill with this name and digest; null while its verification or approval goes on. */
export async function settledStatus(
  procedural: ProceduralMemory,
  { scope, name, digest }: Pick<Skill, 'scope' | 'name' | 'digest'>,
): Promise<SkillStatus | null> {
  const skill = (await procedural.versions(scope, name)).find((one) => one.digest === digest);
  return skill === undefined || skill.status === 'candidate' || skill.status === 'verified' ? null : skill.status;
}

export interface CheckDeps extends Omit<VerificationDeps, 'ground'> {
  readonly procedural: ProceduralMemory;
  /** Checks the proofs of the called skills. */
  readonly checker: ProofChecker;
}

/** `confidence`: 0 to 1; 0 where the skill did not pass. */
type SkillCheck = Verification & { readonly digest: string; readonly confidence: number };

/** Drafts have a round of their own, so that a later verification doesn't reuse their executions. */
const ROUND_OF_DRAFTS = 0;

/**
 * The verification that a draft would get if it were registered now. Nothing is stored.
 *
 * @throws as `examineSkill`
 */
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
  // A callee that can't be loaded is the skill's fault, not the system's.
  const ground = await gatherGround(skill, procedural, (needed) => isProven(needed, checker)).catch(refusalOf);
  const verification =
    typeof ground === 'string'
      ? verificationOf([{ evidence: [], reason: ground }], null)
      : await verifySkill(skill, { ...deps, ground }, signal);
  return { ...verification, digest, confidence: verification.passed ? confidenceOf(verification.found) : 0 };
}
