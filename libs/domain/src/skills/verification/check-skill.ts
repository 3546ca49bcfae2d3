import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { CodeAnalyser } from '../../ports/code-analyser.js';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { ProofChecker } from '../../ports/proof-signer.js';
import type { Sandboxes } from '../../ports/sandboxes.js';
import { confidenceOf, isProven, NOTHING_FOUND } from './proof.js';
import type { TemplateFor } from '../life/skill-packages.js';
import { skillDigest } from '../life/skill-digest.js';
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

/**
 * What verification finds of a skill; nothing is stored. Asked for again within an hour, with the same `attempt` and `round`, nothing
 * runs twice.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, MEMORY_UNAVAILABLE (retryable); an AbortError when `signal` aborts
 */
export async function checkSkill(candidate: Skill, deps: CheckDeps, signal: AbortSignal): Promise<SkillCheck> {
  const digest = skillDigest(candidate);
  const skill = { ...candidate, digest };
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
