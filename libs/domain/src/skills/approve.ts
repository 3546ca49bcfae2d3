import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, ReadScope } from '../ports/memory.js';
import type { Verification } from './verify-skill.js';

/** `automatic`: verified skills are active at once. `review`: they wait for somebody's approval. */
export type ApprovalMode = 'automatic' | 'review';

/** What may become of a skill, by what it is. Nothing else changes a status. */
export const TRANSITIONS: Readonly<Record<SkillStatus, readonly SkillStatus[]>> = {
  candidate: ['verified', 'rejected'],
  verified: ['active', 'pending_review'],
  pending_review: ['active', 'rejected'],
  active: ['deprecated', 'archived'],
  deprecated: ['active', 'archived'],
  archived: ['active'],
  rejected: [],
};

/** Statuses from which this one may be reached. */
export function sourcesOf(to: SkillStatus): SkillStatus[] {
  return (Object.keys(TRANSITIONS) as SkillStatus[]).filter((from) => TRANSITIONS[from].includes(to));
}

interface Change {
  readonly to: SkillStatus;
  readonly reason: string;
  readonly evidence: readonly string[];
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** @throws EtudeError ABORTED where the skill is not in a status from which `to` may be reached, or has another digest */
export function moveSkill(procedural: ProceduralMemory, skill: Skill, { to, reason, evidence, at }: Change): Promise<Skill> {
  const { scope, name, version, digest } = skill;
  return procedural.setStatus(scope, { name, version, digest }, sourcesOf(to), to, reason, evidence, at);
}

/** What a verification found, written down: `verified`, or `rejected` with the reason. */
export function recordVerification(
  procedural: ProceduralMemory,
  skill: Skill,
  { passed, evidence, reason }: Verification,
  at: number,
): Promise<Skill> {
  return moveSkill(procedural, skill, { to: passed ? 'verified' : 'rejected', reason, evidence, at });
}

/**
 * The next status of a verified skill. Where it becomes active, the version it replaces stops being used.
 * Repeating it after a crash finishes what was begun.
 */
export async function settleVerified(procedural: ProceduralMemory, skill: Skill, mode: ApprovalMode, at: number): Promise<Skill> {
  const { evidence, status } = skill;
  if (status !== 'verified' && status !== 'active') return skill;
  if (status === 'active') return activate(procedural, skill, skill.statusReason, at);
  if (mode === 'review') return moveSkill(procedural, skill, { to: 'pending_review', reason: 'waits for review', evidence, at });
  return activate(procedural, skill, 'approved automatically after verification', at);
}

/**
 * Somebody approves what they reviewed. Approving what is active already changes nothing.
 *
 * @throws EtudeError NOT_FOUND; ABORTED where the digest is another one or the skill does not wait for review
 */
export async function approveSkill(
  scope: ReadScope,
  approval: { name: string; version?: number; digest: string; by: string },
  procedural: ProceduralMemory,
  at: number,
): Promise<Skill> {
  const skill = await procedural.get(scope, approval.name, approval.version);
  if (skill === null) throw new EtudeError('NOT_FOUND', `There is no skill "${approval.name}".`, { field: 'name' });
  if (skill.digest !== approval.digest) {
    throw new EtudeError(
      'ABORTED',
      `Skill "${skill.name}" changed: its digest is ${skill.digest}, not the ${approval.digest} that was reviewed. Review it again.`,
      { field: 'digest' },
    );
  }
  if (skill.status !== 'pending_review' && skill.status !== 'active')
    throw new EtudeError(
      'ABORTED',
      `Skill "${skill.name}" is ${skill.status}; only one that waits for review (pending_review) can be approved.`,
      { field: 'name' },
    );
  return activate(procedural, skill, `approved by ${approval.by}`, at);
}

async function activate(procedural: ProceduralMemory, skill: Skill, reason: string, at: number): Promise<Skill> {
  const replaced = await activeVersion(procedural, skill);
  const active =
    skill.status === 'active' ? skill : await moveSkill(procedural, skill, { to: 'active', reason, evidence: skill.evidence, at });
  if (replaced)
    await moveSkill(procedural, replaced, {
      to: 'deprecated',
      reason: `replaced by version ${skill.version}`,
      evidence: replaced.evidence,
      at,
    });
  return active;
}

/** The newest active version of the same owner below this one; null where there is none: nobody replaces what is another's. */
export async function activeVersion(procedural: ProceduralMemory, { scope, name, version }: Skill): Promise<Skill | null> {
  for (let earlier = version - 1; earlier >= 1; earlier -= 1) {
    const skill = await procedural.get({ tenant: scope.tenant, agent: scope.agent }, name, earlier);
    if (skill?.status === 'active' && skill.scope.user === scope.user) return skill;
  }
  return null;
}
