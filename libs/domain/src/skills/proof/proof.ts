import type { Skill } from '@etude/contracts/memory';
import type { SkillProof } from '@etude/contracts/skill-proof';
import type { ProofChecker, ProofSigner } from '../../ports/verification.js';
import { proofText, skillDigest } from '../content-digest.js';
import { isProofOf } from '../life/skill-life.js';

/** The findings of a verification, before they are bound to a digest and signed. */
export type ProofFindings = Omit<SkillProof, 'v' | 'digest' | 'verifiedAt' | 'confidence' | 'keyId' | 'signature'>;

export const NOTHING_FOUND: ProofFindings = {
  testsPassed: 0,
  heldOutPassed: 0,
  mutantsMade: 0,
  mutantsNoticed: 0,
  mutantsSurvived: [],
  findings: [],
  kept: [],
  alike: [],
};

/** With fewer mutants than this, it may be chance that all of them are noticed. */
export const MANY_MUTANTS = 4;

/** A proof for exactly this content. @param verifiedAt ms since 1970 */
export function signProof(skill: Skill, found: ProofFindings, signer: ProofSigner, verifiedAt: number): SkillProof {
  const bound = { digest: skillDigest(skill), verifiedAt, confidence: confidenceOf(found), keyId: signer.keyId };
  const proof: SkillProof = { v: 1, ...bound, ...found, signature: '' };
  return { ...proof, signature: signer.sign(proofText(proof)) };
}

/** Whether the proof is signed with a known key and covers exactly this content. A function needs at least one passed test. */
export function isProven(skill: Skill, checker: ProofChecker): boolean {
  const { proof } = skill;
  if (proof === undefined || !isProofOf(skill, proof) || (skill.kind === 'function' && proof.testsPassed === 0)) return false;
  return checker.isSigned(proofText(proof), proof.keyId, proof.signature);
}

/** The confidence from the evidence, 0 to 1. */
export function confidenceOf({ testsPassed, heldOutPassed, mutantsMade, mutantsNoticed, findings }: ProofFindings): number {
  if (findings.some(({ severity }) => severity === 'error')) return 0;
  const noticed = mutantsMade === 0 ? 0 : mutantsNoticed / mutantsMade;
  const many = Math.min(1, mutantsMade / MANY_MUTANTS);
  const tested = 1 - 0.5 ** (testsPassed + heldOutPassed);
  const warnings = findings.filter(({ severity }) => severity === 'warning').length;
  return Math.round(noticed * many * tested * 0.95 ** warnings * 1_000) / 1_000;
}

export interface Stage {
  readonly evidence?: readonly string[];
  readonly found?: Partial<ProofFindings>;
  /** Why the skill is not verified. Absent if the stage passed. */
  readonly reason?: string;
}
