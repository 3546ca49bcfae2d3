import type { Skill } from '@etude/contracts/memory';
import type { SkillContract, SkillProof, SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, SkillMove } from '../src/ports/memory.js';
import { skillDigest } from '../src/skills/content-digest.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import { approveSkill, archiveSkill, deprecateSkill, rejectSkill, restoreSkill, rollbackSkill } from '../src/skills/life/decisions.js';
import { NOTHING_FOUND } from '../src/skills/proof/proof.js';
import { promoteSkill } from '../src/skills/life/register-skill.js';
import { type Decision, isSameOwner, keyOf, replacedReason } from '../src/skills/life/skill-life.js';
import { NEW_YEAR } from './memory-records.js';

/** A proof for exactly the skill's content, without a signature. */
export function proofOf(skill: Skill, changes: Partial<SkillProof> = {}): SkillProof {
  return {
    ...NOTHING_FOUND,
    v: 1,
    digest: skillDigest(skill),
    verifiedAt: NEW_YEAR,
    testsPassed: skill.tests.length,
    mutantsMade: 2,
    mutantsNoticed: 2,
    confidence: 0.9,
    keyId: 'test',
    signature: '',
    ...changes,
  };
}

/** A decision of Ann, nine milliseconds after the start of the year. */
export const moveOf = (skill: Skill, to: SkillMove['to'], more: Partial<SkillMove> = {}): SkillMove => ({
  key: keyOf(skill),
  to,
  by: 'ann',
  reason: 'asked',
  at: NEW_YEAR + 9,
  ...more,
});

/** The moves that bring a stored skill to each status. */
const WAYS: Readonly<Record<SkillStatus, readonly SkillStatus[]>> = {
  candidate: [],
  verified: ['verified'],
  pending_review: ['verified', 'pending_review'],
  active: ['verified', 'active'],
  deprecated: ['verified', 'active', 'deprecated'],
  archived: ['verified', 'active', 'archived'],
  rejected: ['rejected'],
};

/** Options for the moves of a stored skill. */
export interface SkillLife {
  readonly at?: number;
  /** Makes the proof for the stored skill. The proof includes the tests of the `active` version. */
  readonly proof?: (stored: Skill, active: readonly Skill[]) => SkillProof;
  readonly contract?: SkillContract;
}

/** Stores a skill and moves it to its status. If it becomes active, the owner's active version is replaced. */
export async function storeAt(
  procedural: Pick<ProceduralMemory, 'store' | 'move' | 'versions'>,
  skill: Skill,
  { at = NEW_YEAR, proof = (stored, active) => proofOf(stored, { kept: active.map(dependencyOn) }), contract }: SkillLife = {},
): Promise<Skill> {
  const stored = await procedural.store(skill);
  const way = WAYS[skill.status];
  const decision = { by: 'verification', reason: '', at };
  const active =
    stored.status === 'candidate' && way.includes('verified') ? await procedural.versions(stored.scope, stored.name, 'active') : [];
  const inItsPlace = way.includes('active') ? active : [];
  const away = inItsPlace.filter((version) => version.version !== stored.version && isSameOwner(version.scope, stored.scope));
  const reason = replacedReason(stored.version);
  const room = away.map((version) => ({ key: keyOf(version), to: 'deprecated', ...decision, reason }) as const);
  const moves = way.map((to) => ({
    key: keyOf(stored),
    to,
    ...decision,
    ...(to === 'verified' ? { proof: proof(stored, active) } : {}),
    ...(contract === undefined ? {} : { contract }),
  }));
  return (await procedural.move([...room, ...moves])).at(-1) ?? stored;
}

/** A decision on a skill. */
export interface Decided extends Decision {
  readonly what: string;
  /** The digest that is approved. Default: the skill's digest. */
  readonly digest?: string;
  readonly replacedBy?: string | undefined;
  readonly toVersion?: number | undefined;
}

/** Makes the decision named by `what`. An unknown name means an approval. */
export function decideOn(registry: ProceduralMemory, skill: Skill, { what, digest = skill.digest, ...decided }: Decided): Promise<unknown> {
  const { replacedBy, toVersion, ...decision } = decided;
  switch (what) {
    case 'reject':
      return rejectSkill(registry, skill, decision);
    case 'deprecate':
      return deprecateSkill(registry, skill, { ...decision, ...(replacedBy === undefined ? {} : { replacedBy }) });
    case 'archive':
      return archiveSkill(registry, [skill], decision);
    case 'restore':
      return restoreSkill(registry, [skill], decision);
    case 'rollback':
      return rollbackSkill(registry, skill, { ...decision, toVersion });
    case 'promote':
      return promoteSkill(registry, skill, { ...decision, scope: 'tenant', namesMax: PROMOTED_MAX });
    default:
      return approveSkill(registry, skill, { ...decision, digest });
  }
}

/** Maximum number of skill names of a tenant in tests. */
const PROMOTED_MAX = 2;
