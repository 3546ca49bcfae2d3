import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { CodeAnalyser } from '../../ports/code-analyser.js';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { ProofChecker } from '../../ports/proof-signer.js';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { confidenceOf, isProven, NOTHING_FOUND } from './proof.js';
import { withCarriedTests } from '../life/known-version.js';
import { skillDigest } from '../content-digest.js';
import type { TemplateFor } from '../life/skill-packages.js';
import { gatherGround, type VerificationGround } from './verification-ground.js';
import { type Verification, verifySkill } from './verify-skill.js';

export interface CheckDeps {
  readonly procedural: ProceduralMemory;
  readonly sandboxes: Sandboxes;
  readonly analyser: CodeAnalyser;
  /** Absent: what the skill calls is believed to be verified. */
  readonly checker?: ProofChecker;
  /** See `VerificationDeps`. */
  readonly mutationScoreMin: number;
  readonly templateFor?: TemplateFor;
  readonly attempt?: number;
  readonly round?: number;
}

export interface SkillCheck extends Verification {
  readonly digest: string;
  /** 0 to 1; 0 where it did not pass. */
  readonly confidence: number;
}

/** A draft's executions are no verification's: who registers the same code with other held-out tests has those run. */
const ROUND_OF_DRAFTS = 0;

/**
 * What verification would find of a draft that is registered next, in the words in which it would say so; nothing is stored.
 *
 * @throws as `examineSkill`
 */
export async function checkSkill(draft: Skill, deps: Omit<CheckDeps, 'round'>, signal: AbortSignal): Promise<SkillCheck> {
  const versions = await deps.procedural.versions(draft.scope, draft.name);
  const next = { ...draft, version: (versions[0]?.version ?? 0) + 1 };
  return examineSkill(withCarriedTests(next, versions), { ...deps, round: ROUND_OF_DRAFTS }, signal);
}

/**
 * What verification finds of a version; nothing is stored. Asked for again within an hour, with the same `attempt` and `round`, nothing
 * runs twice.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, MEMORY_UNAVAILABLE (retryable); an AbortError when `signal` aborts
 */
export async function examineSkill(version: Skill, deps: CheckDeps, signal: AbortSignal): Promise<SkillCheck> {
  const digest = skillDigest(version);
  const skill = { ...version, digest };
  const ground = await groundOf(skill, deps);
  const verification = 'reason' in ground ? ground : await verifySkill(skill, { ...deps, ground }, signal);
  return { ...verification, digest, confidence: verification.passed ? confidenceOf(verification.found) : 0 };
}

/** What it calls and can't be brought in is the skill's fault, not the system's. */
async function groundOf(skill: Skill, { procedural, checker }: CheckDeps): Promise<VerificationGround | Verification> {
  try {
    return await gatherGround(skill, procedural, checker && ((needed) => isProven(needed, checker)));
  } catch (error) {
    if (errorCode(error) !== 'FAILED_PRECONDITION' || !(error instanceof Error)) throw error;
    return { passed: false, reason: error.message, evidence: [], contract: null, found: NOTHING_FOUND };
  }
}
