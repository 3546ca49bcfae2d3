import type { Skill } from '@etude/contracts/memory';
import { skillDigest } from '@etude/domain/skills/skill-digest';
import type { MemoryRecord } from '../../record-store.js';
import { parseBody } from '../stored-body.js';

export type ProposeSkill = (skill: Skill) => Promise<void>;

/** The skill of a record as a candidate, with the digest that its code and tests have; null for a procedure in words. */
export function runnableSkill(record: MemoryRecord): Skill | null {
  const { value } = parseBody<Skill>(record);
  if (value.kind === 'procedure' && value.code.trim() === '') return null;
  return {
    ...value,
    scope: record.scope,
    status: 'candidate',
    statusReason: `imported; was ${value.status} where it came from`,
    evidence: [],
    digest: skillDigest(value),
  };
}
