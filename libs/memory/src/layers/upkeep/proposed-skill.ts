import type { Scope, Skill } from '@etude/contracts/memory';
import { skillDigest } from '@etude/domain/skills/life/skill-digest';
import type { MemoryRecord } from '../../record-store.js';
import { parseBody } from '../stored-body.js';

/** Whoever imports is believed as whoever registers a skill is: for their own agent, not for others. */
const IMPORTED_FOR_ALL = 'it was imported for more than one agent';
const isShared = ({ tenant, agent }: Scope) => tenant.startsWith('@') || agent.startsWith('@');

/** @throws EtudeError PERMISSION_DENIED, FAILED_PRECONDITION or INVALID_ARGUMENT, where it may not be registered: its line is refused */
export type ProposeSkill = (skill: Skill) => Promise<void>;

/** As for what is registered. */
const LISTS = { tags: 50, examplePrompts: 50, packages: 50, sources: 100, parameters: 64, tests: 200, heldOut: 200 } as const;
const ITEM_CHARS = { tags: 64, examplePrompts: 2_000, sources: 300 } as const;
const TEXT_CHARS = { description: 10_000, code: 400_000, displayName: 200 } as const;

/**
 * The skill of a record as a candidate that nobody has run, with the digest that its code and tests have; null for an agent's procedure
 * in words.
 */
export function runnableSkill(record: MemoryRecord): Skill | null {
  const { value } = parseBody<Skill>(record);
  if (value.kind === 'procedure' && value.code.trim() === '' && !isShared(record.scope)) return null;
  const { scope } = record;
  const { usage: _usage, history: _history, proof: _proof, contract: _contract, replacedBy: _replacedBy, ...told } = value;
  return {
    ...told,
    scope,
    status: 'candidate',
    statusReason: `imported; was ${value.status} where it came from`,
    evidence: [],
    // By which its history begins.
    origin: 'import',
    executionCount: 0,
    successRate: 1,
    digest: skillDigest(value),
    ...(isShared(scope) ? { untrusted: [...new Set([...(value.untrusted ?? []), IMPORTED_FOR_ALL])] } : {}),
  };
}

const over = (field: string, count: number, what: string) => `body.value.${field}: must not have more than ${count} ${what}`;

/** What is larger than an author may make it; null where nothing is. */
export function tooLarge(skill: Skill): string | null {
  for (const field of Object.keys(LISTS) as Array<keyof typeof LISTS>)
    if ((skill[field]?.length ?? 0) > LISTS[field]) return over(field, LISTS[field], 'entries');
  for (const field of Object.keys(TEXT_CHARS) as Array<keyof typeof TEXT_CHARS>)
    if ((skill[field]?.length ?? 0) > TEXT_CHARS[field]) return over(field, TEXT_CHARS[field], 'characters');
  for (const field of Object.keys(ITEM_CHARS) as Array<keyof typeof ITEM_CHARS>)
    if (skill[field]?.some((item) => item.length > ITEM_CHARS[field])) return over(field, ITEM_CHARS[field], 'characters in an entry');
  return null;
}
