import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';

export interface SkillKey {
  readonly name: string;
  readonly version: number;
  readonly digest: string;
}

export interface StatusChange {
  readonly to: SkillStatus;
  readonly reason: string;
  /** Added to what there is. */
  readonly evidence: readonly string[];
  /** ms since 1970 */
  readonly at: number;
}

/** @throws EtudeError ABORTED where the skill is not what the caller looked at */
export function withStatus(skill: Skill, key: SkillKey, from: readonly SkillStatus[], { to, reason, evidence, at }: StatusChange): Skill {
  const name = `${key.name}@${key.version}`;
  if (skill.digest !== key.digest) {
    throw new EtudeError('ABORTED', `skill ${name} has digest ${skill.digest}, not ${key.digest}; read it again and decide again`);
  }
  if (!from.includes(skill.status)) {
    throw new EtudeError('ABORTED', `skill ${name} is ${skill.status}, not ${from.join(' or ')}; read it again and decide again`);
  }
  return {
    ...skill,
    status: to,
    statusReason: reason,
    evidence: [...new Set([...skill.evidence, ...evidence])],
    updatedAt: Math.max(skill.updatedAt, at),
  };
}

export function notFound({ name, version }: Pick<SkillKey, 'name' | 'version'>): EtudeError {
  return new EtudeError('NOT_FOUND', `there is no skill ${name}@${version}; list the skills to see which there are`);
}
