import type { MessageInitShape } from '@bufbuild/protobuf';
import { type SkillSchema, SkillStatus as StatusMessage } from '@etude/contracts/gen/etude/v1/skills_pb';
import { skillResourceName } from '@etude/contracts/ids';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { timestampAt } from '../wire/duration.js';
import { invalidField } from '../wire/validation.js';

const STATUSES: Readonly<Record<SkillStatus, StatusMessage>> = {
  candidate: StatusMessage.CANDIDATE,
  verified: StatusMessage.VERIFIED,
  pending_review: StatusMessage.PENDING_REVIEW,
  active: StatusMessage.ACTIVE,
  deprecated: StatusMessage.DEPRECATED,
  archived: StatusMessage.ARCHIVED,
  rejected: StatusMessage.REJECTED,
};
const BY_NUMBER = new Map(Object.entries(STATUSES).map(([status, number]) => [number, status as SkillStatus]));

/** undefined: whatever their status. @throws EtudeError INVALID_ARGUMENT */
export function statusFilterOf(status: StatusMessage): SkillStatus | undefined {
  if (status === StatusMessage.UNSPECIFIED) return undefined;
  const known = BY_NUMBER.get(status);
  if (!known) throw invalidField('status', `${status as number} is no status of a skill`);
  return known;
}

/** A skill as callers see it. Its tests stay inside; they are made from hidden cases. */
export function skillMessage(skill: Skill): MessageInitShape<typeof SkillSchema> {
  const { agent } = skill.scope;
  const { kind, version, description, code, tags, successRate, evidence, sources, scripted, digest, statusReason } = skill;
  return {
    name: skillResourceName(skill.name),
    agent,
    kind,
    version,
    description,
    code,
    tags,
    successRate,
    evidence,
    sources,
    scripted,
    digest,
    statusReason,
    status: STATUSES[skill.status],
    entryPoint: skill.entryPoint ?? '',
    executionCount: BigInt(skill.executionCount),
    model: skill.model ?? '',
    createTime: timestampAt(skill.createdAt),
    updateTime: timestampAt(skill.updatedAt),
    testCount: skill.tests.length,
  };
}
