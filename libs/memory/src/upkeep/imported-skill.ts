import { parseBody } from '../layers/records.js';
import { skillKey } from '../layers/skill-records.js';
import type { MemoryRecord } from '../record-store.js';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { hasHiddenTests, isInWords, skillDigest } from '@etude/domain/skills/content-digest';
import { isProofOf } from '@etude/domain/skills/life/skill-life';
import { isProven } from '@etude/domain/skills/proof/proof';
import { createHash } from 'node:crypto';

/** A skill of an import, which nobody has verified or approved yet. */
export interface Proposal {
  readonly skill: Skill;
  /** Why it comes in out of use; null where it is to be verified. */
  readonly setAside: string | null;
}

/**
 * Registers an imported skill in the caller's name; `unchanged`: it was there.
 *
 * @throws EtudeError PERMISSION_DENIED, FAILED_PRECONDITION or INVALID_ARGUMENT, where it may not be registered: its line is refused. ABORTED
 *   where its owner was erased (`isErased`)
 */
export type ProposeSkill = (proposal: Proposal) => Promise<'added' | 'unchanged'>;

/** Nobody uses it where it comes from, for whatever reason: replaced, found harmful, withdrawn, never good enough. */
const OUT_OF_USE: ReadonlySet<SkillStatus> = new Set(['deprecated', 'archived', 'rejected']);

export interface ToldSkill {
  readonly line: number;
  /** As its line says, of the tenant that imports it. */
  readonly told: Skill;
}

export const toldSkill = (line: number, record: MemoryRecord): ToldSkill => ({
  line,
  told: { ...parseBody<Skill>(record).value, scope: record.scope },
});

/** In the order of their versions, so that these are counted as they were. Of one content the one that is in use where it comes from counts. */
export function inOrder(skills: readonly ToldSkill[]): ReadonlyArray<ToldSkill & { readonly isToldElsewhere: boolean }> {
  const contentOf = ({ told }: ToldSkill) => JSON.stringify([told.scope.agent, told.scope.user, told.name, skillDigest(told)]);
  const inUse = new Set(skills.filter(({ told }) => !OUT_OF_USE.has(told.status)).map(contentOf));
  const keyOf = ({ told }: ToldSkill) => skillKey({ ...told, ...told.scope });
  return skills
    .map((one) => ({ ...one, isToldElsewhere: OUT_OF_USE.has(one.told.status) && inUse.has(contentOf(one)) }))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** What the skills of one import name as their source, by which all of them can be withdrawn: the same ones are the same import. */
export function importOf(skills: readonly ToldSkill[]): string {
  const hash = createHash('sha256');
  for (const { told } of skills)
    hash.update(JSON.stringify([told.scope.agent, told.scope.user, told.name, told.version, skillDigest(told)]));
  return `imports/i${hash.digest('hex').slice(0, 32)}`;
}

/**
 * A skill as a candidate that nobody has run. It has a source that nobody is trusted for, so that a person approves it. Which tasks it solved
 * is believed by nobody: who has such a task would be shown it.
 *
 * @param source "imports/{id}"
 */
export function proposalOf(told: Skill, source: string): Proposal {
  const { usage: _usage, history: _history, proof: _proof, contract: _contract, replacedBy: _replacedBy, ...kept } = told;
  const { status, statusReason: why } = told;
  const statusReason = `imported; was ${status} where it came from`;
  const skill: Skill = {
    ...kept,
    status: 'candidate',
    statusReason,
    evidence: [],
    // By which its history begins.
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

/** What a skill calls is in its own tenant, wherever it was exported, or everybody's. */
export function withOwnPins(skill: Skill, tenant: string): Skill {
  if (skill.dependencies === undefined) return skill;
  const dependencies = skill.dependencies.map((pin) => (pin.tenant === GLOBAL_TENANT ? pin : { ...pin, tenant }));
  return { ...skill, dependencies };
}

/**
 * A skill that claims to be verified without a proof for its content becomes a candidate. null where the claim holds.
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
