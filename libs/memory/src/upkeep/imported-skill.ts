import { skillKey } from '../layers/skill-records.js';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { hasHiddenTests, isInWords, skillDigest } from '@etude/domain/skills/content-digest';
import { isProofOf } from '@etude/domain/skills/life/skill-life';
import { isProven } from '@etude/domain/skills/proof/proof';
import { createHash } from 'node:crypto';

/** An imported skill, which nobody here has verified or approved. */
export interface Proposal {
  readonly skill: Skill;
  /** Why it is stored out of use; null if it is to be verified. */
  readonly setAside: string | null;
}

/**
 * Registers an imported skill in the caller's name. `unchanged`: it was already there.
 *
 * @throws EtudeError PERMISSION_DENIED, FAILED_PRECONDITION or INVALID_ARGUMENT if it may not be registered, which refuses its line.
 *   ABORTED if its owner was erased (`isErased`)
 */
export type ProposeSkill = (proposal: Proposal) => Promise<'added' | 'unchanged'>;

/** Statuses of skills that aren't used where they come from: replaced, harmful, withdrawn or never good enough. */
const OUT_OF_USE: ReadonlySet<SkillStatus> = new Set(['deprecated', 'archived', 'rejected']);

export interface ToldSkill {
  readonly line: number;
  /** The skill as its line describes it, with the importing tenant as its tenant. */
  readonly told: Skill;
}

/** Sorts by version, so that skills are numbered in that order. `isToldElsewhere`: out of use, but another line has its content in use. */
export function inOrder(skills: readonly ToldSkill[]): ReadonlyArray<ToldSkill & { readonly isToldElsewhere: boolean }> {
  const contentOf = ({ told }: ToldSkill) => JSON.stringify([told.scope.agent, told.scope.user, told.name, skillDigest(told)]);
  const inUse = new Set(skills.filter(({ told }) => !OUT_OF_USE.has(told.status)).map(contentOf));
  const keyOf = ({ told }: ToldSkill) => skillKey({ ...told, ...told.scope });
  return skills
    .map((one) => ({ ...one, isToldElsewhere: OUT_OF_USE.has(one.told.status) && inUse.has(contentOf(one)) }))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The source that all skills of one import name, by which they can be withdrawn together. The same skills give the same source. */
export function importOf(skills: readonly ToldSkill[]): string {
  const hash = createHash('sha256');
  for (const { told } of skills)
    hash.update(JSON.stringify([told.scope.agent, told.scope.user, told.name, told.version, skillDigest(told)]));
  return `imports/i${hash.digest('hex').slice(0, 32)}`;
}

/**
 * Makes an imported skill a candidate that was never run. Its untrusted source makes sure that a person approves it. The tasks it claims to
 * have solved are dropped, since otherwise it would be offered for such tasks.
 *
 * @param source "imports/{id}"
 */
export function proposalOf(told: Skill, source: string): Proposal {
  const {
    usage: _usage,
    history: _history,
    proof: _proof,
    contract: _contract,
    replacedBy: _replacedBy,
    members: _members,
    ...kept
  } = told;
  const { status, statusReason: why } = told;
  const statusReason = `imported; was ${status} where it came from`;
  const skill: Skill = {
    ...kept,
    status: 'candidate',
    statusReason,
    evidence: [],
    // The history of the skill begins with this origin.
    origin: 'import',
    cues: told.examplePrompts ?? [],
    fingerprints: [],
    sources: [...new Set([...told.sources, source])],
    executionCount: 0,
    successRate: 1,
    digest: skillDigest(told),
    ...(hasHiddenTests(told) ? { hiddenTests: true } : {}),
  };
  return { skill, setAside: OUT_OF_USE.has(status) ? `${statusReason}${why === '' ? '' : `: ${why}`}` : null };
}

const NEEDS_PROOF: ReadonlySet<SkillStatus> = new Set(['verified', 'pending_review', 'active']);

/** Points a skill's dependencies at the importing tenant. Those on global skills stay. */
export function withOwnPins(skill: Skill, tenant: string): Skill {
  if (skill.dependencies === undefined) return skill;
  const dependencies = skill.dependencies.map((pin) => (pin.tenant === GLOBAL_TENANT ? pin : { ...pin, tenant }));
  return { ...skill, dependencies };
}

/**
 * Makes a skill a candidate if it claims to be verified without a proof for its content. null if the claim holds or needs no proof.
 *
 * @param at ms since 1970
 * @param checker checks the signatures of proofs. Absent: the service that runs a skill checks them
 */
export function unprovenAsCandidate(skill: Skill, at: number, checker?: ProofChecker): Skill | null {
  if (!NEEDS_PROOF.has(skill.status) || isInWords(skill)) return null;
  if (checker === undefined ? isProofOf(skill, skill.proof) : isProven(skill, checker)) return null;
  const { proof: _proof, contract: _contract, history = [], status, ...kept } = skill;
  const statusReason = `imported; was ${status} where it came from, without a proof for its content`;
  const change = { at, by: 'import', from: status, to: 'candidate', reason: statusReason } as const;
  return { ...kept, status: 'candidate', statusReason, evidence: [], history: [...history, change] };
}
