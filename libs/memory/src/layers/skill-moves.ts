import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillKey, SkillMove } from '@etude/domain/ports/skill-registry';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { movedSkill, noSuchSkill } from '@etude/domain/skills/life/skill-life';
import type { Change, RecordStore, StoredRecord } from '../record-store.js';
import { untilTaken } from './collisions.js';
import type { LayerDeps } from './layer-deps.js';
import { skillKey, skillRecord } from './skill-records.js';
import { openedSkill } from './stored-skill.js';

const LAYER = 'procedural';

/**
 * All moves of a call in one write: one unit where the store has transactions, else in their order, so that a repeat finds those that
 * took place and goes on behind them. Nothing is written where one of them is refused.
 */
export async function moveSkills(
  { store, proofChecker }: Pick<LayerDeps, 'store' | 'proofChecker'>,
  moves: readonly SkillMove[],
): Promise<readonly Skill[]> {
  const [first] = moves;
  if (first === undefined) return [];
  const tenant = tenantOf(moves);
  return untilTaken(`skill ${first.key.name}`, async () => {
    const known = await loadSkills(store, tenant, moves);
    const moved = new Map<string, Skill>();
    for (const move of moves) {
      const at = recordKey(move.key);
      const skill = moved.get(at) ?? known.get(at)?.skill;
      if (skill === undefined) throw noSuchSkill(move.key);
      moved.set(at, movedSkill(skill, move, proofChecker ?? null));
    }
    const changes = [...moved].flatMap(([at, skill]) => changeOf(known.get(at), skill));
    const done = changes.length === 0 ? [] : await store.write(tenant, changes);
    return done.includes(false) ? null : moves.flatMap(({ key }) => moved.get(recordKey(key)) ?? []);
  });
}

type Known = ReadonlyMap<string, { readonly record: StoredRecord; readonly skill: Skill; readonly taken: readonly string[] }>;

async function loadSkills(store: RecordStore, tenant: string, moves: readonly SkillMove[]): Promise<Known> {
  const keys = [...new Set(moves.map(({ key }) => recordKey(key)))];
  const records = await store.load({ tenant, agent: null }, LAYER, 'skill', keys);
  return new Map(records.map((record) => [record.key, openedSkill(record)]));
}

function changeOf(known: ReturnType<Known['get']>, skill: Skill): readonly Change[] {
  if (known === undefined || known.skill === skill) return [];
  return [{ do: 'update', record: skillRecord(skill, known.taken), revision: known.record.revision }];
}

function recordKey(key: SkillKey): string {
  return skillKey(key);
}

/** @throws EtudeError TENANT_MISSING, INVALID_ARGUMENT for moves of several tenants */
function tenantOf(moves: readonly SkillMove[]): string {
  const [tenant = '', ...others] = new Set(moves.map(({ key }) => key?.tenant));
  requireScope({ tenant, agent: null });
  if (others.length === 0) return tenant;
  throw new EtudeError('INVALID_ARGUMENT', 'skills of several tenants were to be moved at once; move those of each by themselves');
}
