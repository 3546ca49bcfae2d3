import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { MoveOptions, SkillMove } from '@etude/domain/ports/skill-registry';
import { requireScope } from '@etude/domain/retrieval/scopes';
import {
  type CallGraph,
  comesIntoUse,
  type MovedVersion,
  requireCallable,
  requireReplacements,
  uncallableReason,
  versionKey,
} from '@etude/domain/skills/life/call-graph';
import {
  activatedAt,
  isVersionOf,
  keyOf,
  lastActivated,
  movedSkill,
  noSuchSkill,
  otherActive,
  requireOnlyActive,
} from '@etude/domain/skills/life/skill-life';
import { namesThatReturn } from '@etude/domain/skills/life/register-skill';
import type { Change, RecordStore } from '../record-store.js';
import { type LayerDeps, untilTaken } from './records.js';
import { dependentsOf, ownedSkills, skillUpdate, type StoredSkill, versionsOfKeys } from './skill-records.js';
import { withRoom } from './skill-room.js';

/**
 * All moves of a call in one write: one unit where the store has transactions, else in their order, so that a repeat finds those that
 * took place and goes on behind them. Nothing is written where one of them is refused.
 *
 * Of one owner's versions at most one is active behind it: what becomes active does so by a write to the oldest version as well, so that
 * of two at once one is repeated, and finds the other. Without transactions both may have been written; then the last one stays. In the
 * same way what comes into use writes to whatever it calls, which may be archived at the same time.
 */
export async function moveSkills(
  deps: MoveDeps,
  moves: readonly SkillMove[],
  { namesMax = 0 }: MoveOptions = {},
): Promise<readonly Skill[]> {
  const [first] = moves;
  if (first === undefined) return [];
  const tenant = tenantOf(moves);
  const entered = new Set<string>();
  const moved = await untilTaken(`skill ${first.key.name}`, () => moveOnce(deps, moves, { tenant, namesMax, entered }));
  const [lost] = [
    ...(await leaveOneActive(
      deps,
      moved.filter(({ status }, i) => status === 'active' && moves[i]?.to === 'active'),
    )),
    ...(await leaveCallable(
      deps,
      moved.filter((skill) => entered.has(versionKey(skill))),
      moved.filter((skill, i) => leftUse(skill, moves[i])),
    )),
  ];
  if (lost !== undefined) throw lost;
  return moved;
}

export type MoveDeps = Pick<LayerDeps, 'store' | 'clock' | 'proofChecker'>;

interface Moving {
  readonly tenant: string;
  readonly namesMax: number;
  /** Gets what comes into use, or waits for review, by this call. */
  readonly entered: Set<string>;
}

/** null where somebody was faster. */
async function moveOnce(
  deps: MoveDeps,
  moves: readonly SkillMove[],
  { tenant, namesMax, entered }: Moving,
): Promise<readonly Skill[] | null> {
  const { store, proofChecker } = deps;
  const found = await versionsOfKeys(
    store,
    tenant,
    moves.map(({ key }) => key),
  );
  const known = new Map(found.flatMap((one) => (one === undefined ? [] : [[one.record.key, one]])));
  const moved = new Map<string, Skill>();
  for (const [i, move] of moves.entries()) {
    const at = found[i]?.record.key ?? '';
    const skill = moved.get(at) ?? known.get(at)?.skill;
    if (skill === undefined) throw noSuchSkill(move.key);
    moved.set(at, movedSkill(skill, move, proofChecker ?? null));
  }
  const changes = [...moved].flatMap(([at, skill]) => changeOf(known.get(at), skill));
  const changed = moves.flatMap((move, i) => movedVersion(found[i], moved, move));
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
  const graph = callGraph(store);
  // Before the changes, as what is seen: of two that are named in each other's place at once, one finds the other.
  seen.push(...(await unchangedOf(store, tenant, await requireReplacements(graph, changed))));
  const called = await unchangedOf(store, tenant, await requireCallable(graph, changed));
  for (const one of changed) if (comesIntoUse(one)) entered.add(versionKey(one.after));
  const others = notAmong(changes, [...new Map(seen.map((change) => [change.record.key, change])).values()]);
  // The called skills stand behind the changes: of an archiving at the same time, one of the two finds the other.
  const written = [...others, ...changes, ...notAmong([...others, ...changes], called)];
  const done = changes.length === 0 ? [] : await writeWithRoom(deps, changed, namesMax, () => store.write(tenant, written));
  return done.includes(false) ? null : found.flatMap((one) => moved.get(one?.record.key ?? '') ?? []);
}

/** For names that take up room again. All of one owner, as far as there is a limit. */
async function writeWithRoom<T>(deps: MoveDeps, changed: readonly MovedVersion[], namesMax: number, write: () => Promise<T>): Promise<T> {
  if (namesMax === 0) return write();
  const versionsIn = async (skill: Skill) => (await versionsOf(deps.store, skill)).map((one) => one.skill);
  const [returning] = await namesThatReturn(changed, versionsIn);
  return returning === undefined ? write() : withRoom(deps, { ...returning.scope, name: returning.name }, namesMax, write);
}

function notAmong(changes: readonly Change[], others: readonly Change[]): readonly Change[] {
  return others.filter(({ record }) => !changes.some((change) => change.record.key === record.key));
}

function movedVersion(known: StoredSkill | undefined, moved: ReadonlyMap<string, Skill>, move: SkillMove): readonly MovedVersion[] {
  const after = moved.get(known?.record.key ?? '');
  return known === undefined || after === undefined ? [] : [{ before: known.skill, after, move }];
}

/** Each once. What is everybody's is in another tenant, and can't be written to here. */
async function unchangedOf(store: RecordStore, tenant: string, skills: readonly Skill[]): Promise<readonly Change[]> {
  const own = skills.filter(({ scope }) => scope.tenant === tenant);
  if (own.length === 0) return [];
  const stored = await versionsOfKeys(store, tenant, own.map(keyOf));
  return [...new Map(stored.flatMap((one) => (one === undefined ? [] : [[one.record.key, unchanged(one)]]))).values()];
}

export function callGraph(store: RecordStore): CallGraph {
  return {
    versions: async (owner, name) => (await ownedSkills(store, owner, { where: { name } })).map(({ skill }) => skill),
    dependents: (key, options) => dependentsOf(store, key, options),
  };
}

/** Whether it was in use until this very move. */
function leftUse({ history = [] }: Skill, move: SkillMove | undefined): boolean {
  const last = history.at(-1);
  if (last === undefined || move === undefined || last.from !== 'active' || last.to !== 'deprecated') return false;
  return move.to === last.to && move.by === last.by && move.at === last.at && move.reason === last.reason;
}

/**
 * Only a store without transactions lets what is called go at the same time. What made room for one that leaves again comes back.
 *
 * @param left what went out of use by the same call
 * @returns why, for each that leaves (FAILED_PRECONDITION)
 */
async function leaveCallable(deps: MoveDeps, entered: readonly Skill[], left: readonly Skill[]): Promise<readonly EtudeError[]> {
  const lost: EtudeError[] = [];
  for (const skill of entered) {
    const reason = await uncallableReason(callGraph(deps.store), skill);
    if (reason === null) continue;
    const { by = '', at = 0 } = skill.history?.at(-1) ?? {};
    const to = skill.status === 'active' ? 'deprecated' : 'rejected';
    await moveSkills(deps, [{ key: keyOf(skill), to, from: [skill.status], by, at, reason }]);
    const replaced = left.filter(
      (one) => isVersionOf(one, skill) || (one.replacedBy === skill.name && versionKey(one) !== versionKey(skill)),
    );
    for (const one of replaced)
      await bringBack(deps, one, { by, at, reason: `version ${skill.version} of ${skill.name} could not take its place` });
    lost.push(new EtudeError('FAILED_PRECONDITION', reason));
  }
  return lost;
}

/** Whether the skill is in use again. It isn't where another decision or version came first, or where a skill that it calls is gone. */
export function bringBack(deps: MoveDeps, skill: Skill, decision: Pick<SkillMove, 'by' | 'at' | 'reason'>): Promise<boolean> {
  return isMoved(deps, { ...decision, key: keyOf(skill), to: 'active', from: ['deprecated'] });
}

/** false: somebody else decided on it meanwhile, or it may not be moved there any more. */
export async function isMoved(deps: MoveDeps, move: SkillMove): Promise<boolean> {
  try {
    await moveSkills(deps, [move]);
    return true;
  } catch (error) {
    if (errorCode(error) !== 'ABORTED' && errorCode(error) !== 'FAILED_PRECONDITION') throw error;
    return false;
  }
}

/** Increments the revision, so that a writer with an earlier read is refused. */
function unchanged(stored: StoredSkill): Change {
  return skillUpdate(stored, stored.skill);
}

/** @returns an error (ABORTED) for each version that lost to another one */
export async function leaveOneActive(deps: MoveDeps, entered: readonly Skill[]): Promise<readonly EtudeError[]> {
  const lost: EtudeError[] = [];
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
    if (away.some(({ version }) => version === skill.version)) lost.push(otherActive(skill, stays));
  }
  return lost;
}

/** Of the same owner, oldest first. */
function versionsOf(store: RecordStore, { scope, name }: Skill, status?: SkillStatus): Promise<readonly StoredSkill[]> {
  return ownedSkills(store, scope, { where: { name, ...(status === undefined ? {} : { status }) } });
}

function changeOf(known: StoredSkill | undefined, skill: Skill): readonly Change[] {
  return known === undefined || known.skill === skill ? [] : [skillUpdate(known, skill)];
}

/** @throws EtudeError TENANT_MISSING, INVALID_ARGUMENT for moves of several tenants */
function tenantOf(moves: readonly SkillMove[]): string {
  const [tenant = '', ...others] = new Set(moves.map(({ key }) => key?.tenant));
  requireScope({ tenant, agent: null });
  if (others.length === 0) return tenant;
  throw new EtudeError('INVALID_ARGUMENT', 'skills of several tenants were to be moved at once; move those of each by themselves');
}
