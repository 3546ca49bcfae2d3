import type { Scope, Skill } from '@etude/contracts/memory';
import { skillDigest } from '@etude/domain/skills/life/skill-digest';
import type { MemoryRecord } from '../../record-store.js';
import { parseBody } from '../stored-body.js';

/** Whoever imports is believed as whoever registers a skill is: for their own agent, not for others. */
const IMPORTED_FOR_ALL = 'it was imported for more than one agent';
const isShared = ({ tenant, agent }: Scope) => tenant.startsWith('@') || agent.startsWith('@');

export type ProposeSkill = (skill: Skill) => Promise<void>;

/** The skill of a record as a candidate, with the digest that its code and tests have; null for an agent's procedure in words. */
export function runnableSkill(record: MemoryRecord): Skill | null {
  const { value } = parseBody<Skill>(record);
  if (value.kind === 'procedure' && value.code.trim() === '' && !isShared(record.scope)) return null;
  const { scope } = record;
  return {
    ...value,
    scope,
    status: 'candidate',
    statusReason: `imported; was ${value.status} where it came from`,
    evidence: [],
    digest: skillDigest(value),
    ...(isShared(scope) ? { untrusted: [...new Set([...(value.untrusted ?? []), IMPORTED_FOR_ALL])] } : {}),
  };
}
