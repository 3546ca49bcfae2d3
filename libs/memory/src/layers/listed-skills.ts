import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { Fields, RecordStore } from '../record-store.js';
import { everyRecord } from './every-record.js';
import { keyBefore, keyBehind } from './skill-records.js';
import { openedSkill } from './stored-skill.js';

type ListOptions = Parameters<ProceduralMemory['list']>[1];

const LAYER = 'procedural';
const PAGE = 64;

/**
 * The newest of each owner, see `ProceduralMemory.list`. Keys sort by name and agent, and all that an agent calls so is read together: records
 * from before versions were counted for each user do not stand with their user.
 */
export async function listedSkills(store: RecordStore, scope: ReadScope, options: ListOptions): Promise<readonly Skill[]> {
  requireScope(scope);
  const { limit } = options;
  if (!(limit > 0)) return [];
  const filter = { kinds: ['skill'], where: whereOf(options) } as const;
  const lines: Skill[] = [];
  let together: Skill[] = [];
  for await (const record of everyRecord(store, scope, LAYER, filter, { size: Math.min(limit * 2, PAGE), ...startOf(options) })) {
    const { skill } = openedSkill(record);
    if (together.length > 0 && !isTogether(together[0], skill)) {
      lines.push(...newestOfEach(together, options));
      if (lines.length >= limit) return lines.slice(0, limit);
      together = [];
    }
    together.push(skill);
  }
  return [...lines, ...newestOfEach(together, options)].slice(0, limit);
}

function isTogether(a: Skill | undefined, b: Skill): boolean {
  return a?.name === b.name && a.scope.agent === b.scope.agent;
}

/** By user, nobody's first. */
function newestOfEach(skills: readonly Skill[], { afterName, afterAgent, afterUser }: ListOptions): readonly Skill[] {
  const newest = new Map<string, Skill>();
  for (const skill of skills) {
    const user = skill.scope.user ?? '';
    const isSeen = afterUser !== undefined && skill.name === afterName && skill.scope.agent === afterAgent && user <= (afterUser ?? '');
    if (!isSeen && skill.version >= (newest.get(user)?.version ?? 0)) newest.set(user, skill);
  }
  return [...newest].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, skill]) => skill);
}

function startOf({ afterName, afterAgent, afterUser }: ListOptions): { readonly afterKey?: string } {
  if (afterName === undefined) return {};
  const isWithin = afterAgent !== undefined && afterUser !== undefined;
  return { afterKey: isWithin ? keyBefore(afterName, afterAgent) : keyBehind(afterName, afterAgent) };
}

function whereOf({ status, category }: ListOptions): Fields {
  return { ...(status === undefined ? {} : { status }), ...(category === undefined ? {} : { category }) };
}
