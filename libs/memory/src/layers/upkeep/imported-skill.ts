import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { isInWords } from '@etude/domain/skills/content-digest';
import { isProofOf } from '@etude/domain/skills/life/skill-life';
import { isProven } from '@etude/domain/skills/proof/proof';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';

const NEEDS_PROOF: ReadonlySet<SkillStatus> = new Set(['verified', 'pending_review', 'active']);

/** What a skill calls is in its own tenant, wherever it was exported, or everybody's. */
export function withOwnPins(skill: Skill, tenant: string): Skill {
  if (skill.dependencies === undefined) return skill;
  const dependencies = skill.dependencies.map((pin) => (pin.tenant === GLOBAL_TENANT ? pin : { ...pin, tenant }));
  return { ...skill, dependencies };
}

/**
 * A skill whose line says that it was verified, without a proof for what it holds, is one that has to be verified. null where nothing is
 * wrong with it.
 *
 * @param at ms since 1970
 * @param checker believes signatures under proofs; absent: who runs a skill looks at them
 */
export function unprovenAsCandidate(skill: Skill, at: number, checker?: ProofChecker): Skill | null {
  if (!NEEDS_PROOF.has(skill.status) || isInWords(skill)) return null;
  if (checker === undefined ? isProofOf(skill, skill.proof) : isProven(skill, checker)) return null;
  const { proof: _proof, contract: _contract, history = [], status, ...kept } = skill;
  const statusReason = `imported; was ${status} where it came from, without a proof for its content`;
  const change = { at, by: 'import', from: status, to: 'candidate', reason: statusReason } as const;
  return { ...kept, status: 'candidate', statusReason, evidence: [], history: [...history, change] };
}
