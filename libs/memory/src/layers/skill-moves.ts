import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillKey, SkillMove } from '@etude/domain/ports/skill-registry';
import { requireScope } from '@etude/domain/retrieval/scopes';
import { activatedAt, isVersionOf, lastActivated, otherActive, requireOnlyActive } from '@etude/domain/skills/life/one-active';
import { keyOf, movedSkill, noSuchSkill } from '@etude/domain/skills/life/skill-life';
import type { Change, RecordStore, StoredRecord } from '../record-store.js';
import { untilTaken } from './collisions.js';
import { everyRecord } from './every-record.js';
import type { LayerDeps } from './layer-deps.js';
import { skillKey, skillRecord } from './skill-records.js';
import { openedSkill, type StoredSkill } from './stored-skill.js';

const LAYER = 'procedural';
const PAGE = 64;

/**
 * All moves of a call in one write: one unit where the store has transactions, else in their order, so that a repeat finds those that
 * took place and goes on behind them. Nothing is written where one of them is refused.
 *
 * Of one owner's versions at most one is active behind it: what becomes active does so by a write to the oldest version as well, so that
 * of two at once one is repeated, and finds the other. Without transactions both may have been written; then the last one stays.
 */
export async function moveSkills(deps: MoveDeps, moves: readonly SkillMove[]): Promise<readonly Skill[]> {
  const [first] = moves;
  if (first === undefined) return [];
  const tenant = tenantOf(moves);
  const moved = await untilTaken(`skill ${first.key.name}`, () => moveOnce(deps, tenant, moves));
  await leaveOneActive(
    deps,
    moved.filter(({ status }, i) => status === 'active' && moves[i]?.to === 'active'),
  );
  return moved;
}

type MoveDeps = Pick<LayerDeps, 'store' | 'proofChecker'>;

async function moveOnce({ store, proofChecker }: MoveDeps, tenant: string, moves: readonly SkillMove[]): Promise<readonly Skill[] | null> {
  const known = await loadSkills(store, tenant, moves);
  const moved = new Map<string, Skill>();
  for (const move of moves) {
    const at = recordKey(move.key);
    const skill = moved.get(at) ?? known.get(at)?.skill;
    if (skill === undefined) throw noSuchSkill(move.key);
    moved.set(at, movedSkill(skill, move, proofChecker ?? null));
  }
  const changes = [...moved].flatMap(([at, skill]) => changeOf(known.get(at), skill));
  const entering = [...moved].filter(([at, { status }]) => status === 'active' && known.get(at)?.skill.status !== 'active');
  const seen: Change[] = [];
  for (const [, skill] of entering) {
    const versions = await versionsOf(store, skill);
    requireOnlyActive(
      skill,
      versions.map((version) => moved.get(version.record.key) ?? version.skill),
    );
    seen.push(...versions.slice(0, 1).map((oldest) => unchanged(oldest)));
  }
  const others = seen.filter(({ record }) => !changes.some((change) => change.record.key === record.key));
  const done = changes.length === 0 ? [] : await store.write(tenant, [...others, ...changes]);
  return done.includes(false) ? null : moves.flatMap(({ key }) => moved.get(recordKey(key)) ?? []);
}

/** Moves its revision on, so that whoever read it before writes nothing. */
function unchanged({ record, skill, taken }: StoredSkill): Change {
  return { do: 'update', record: skillRecord(skill, taken), revision: record.revision };
}

/** @throws EtudeError ABORTED where another one stays */
async function leaveOneActive(deps: MoveDeps, entered: readonly Skill[]): Promise<void> {
  for (const skill of entered) {
    const active = (await versionsOf(deps.store, skill, 'active')).map((version) => version.skill);
    const stays = lastActivated(active);
    if (stays === undefined || active.length === 1) continue;
    const { by, reason, at } = {
      by: skill.history?.at(-1)?.by ?? '',
      reason: `replaced by version ${stays.version}`,
      at: activatedAt(stays),
    };
    const away = active.filter(({ version }) => version !== stays.version);
    await moveSkills(
      deps,
      away.map((version) => ({ key: keyOf(version), to: 'deprecated', from: ['active'], by, reason, at })),
    );
    if (away.some(({ version }) => version === skill.version)) throw otherActive(skill, stays);
  }
}

/** Of the same owner, oldest first. */
async function versionsOf(store: RecordStore, skill: Skill, status?: SkillStatus): Promise<readonly StoredSkill[]> {
  const { tenant, agent } = skill.scope;
  const where = { name: skill.name, ...(status === undefined ? {} : { status }) };
  const found: StoredSkill[] = [];
  for await (const record of everyRecord(store, { tenant, agent }, LAYER, { kinds: ['skill'], where }, { size: PAGE })) {
    const version = openedSkill(record);
    if (isVersionOf(version.skill, skill)) found.push(version);
  }
  return found;
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
