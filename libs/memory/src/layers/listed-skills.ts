import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory, ReadScope } from '@etude/domain/ports/memory';
import { requireScope } from '@etude/domain/retrieval/scopes';
import type { Fields, RecordStore } from '../record-store.js';
import { everyRecord } from './every-record.js';
import { keyBehind } from './skill-records.js';
import { openedSkill } from './stored-skill.js';

type ListOptions = Parameters<ProceduralMemory['list']>[1];

const LAYER = 'procedural';
const PAGE = 64;

/** The newest version of each owner, see `ProceduralMemory.list`. Keys sort by name, agent, user and version. */
export async function listedSkills(store: RecordStore, scope: ReadScope, options: ListOptions): Promise<readonly Skill[]> {
  requireScope(scope);
  const { limit } = options;
  if (!(limit > 0)) return [];
  const filter = { kinds: ['skill'], where: whereOf(options) } as const;
  const listed: Skill[] = [];
  for await (const record of everyRecord(store, scope, LAYER, filter, { size: Math.min(limit * 2, PAGE), ...startOf(options) })) {
    const { skill } = openedSkill(record);
    const last = listed.at(-1);
    if (last !== undefined && isSameLine(last, skill)) listed.pop();
    else if (listed.length === limit) break;
    listed.push(skill);
  }
  return listed;
}

function isSameLine(a: Skill, b: Skill): boolean {
  return a.name === b.name && a.scope.agent === b.scope.agent && a.scope.user === b.scope.user;
}

function startOf({ afterName, afterAgent, afterUser }: ListOptions): { readonly afterKey?: string } {
  if (afterName === undefined) return {};
  if (afterAgent === undefined) return { afterKey: keyBehind(afterName) };
  return { afterKey: afterUser === undefined ? keyBehind(afterName, afterAgent) : keyBehind(afterName, afterAgent, afterUser ?? '') };
}

function whereOf({ status, category }: ListOptions): Fields {
  return { ...(status === undefined ? {} : { status }), ...(category === undefined ? {} : { category }) };
}
