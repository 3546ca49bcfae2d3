import { usesOf } from './usage.js';
import { calledVersions, callersFirst, everySkill, type SkillShelf, uncallableReason, versionKey, versionsBehind } from './call-graph.js';
import { IN_USE, isVersionOf, keyOf, LIVING } from './skill-life.js';
import type { Skill } from '@etude/contracts/memory';
import type { SkillChange, SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillMove, SkillRegistry } from '../../ports/skill-registry.js';

/** What is taken out of sight; what is absent is not looked at. */
export interface PrunePolicy {
  /** Active, and neither used nor made active for so many days. */
  readonly unusedDays?: number;
  /** Active, used at least `usesMin` times, and succeeds less often than `rateMax`. */
  readonly failing?: { readonly rateMax: number; readonly usesMin: number };
  /** Deprecated for so many days. */
  readonly supersededDays?: number;
}

export interface PlannedPrune {
  readonly skill: Skill;
  readonly reason: string;
}

/** What the policy names, and stays all the same. */
export interface KeptFromPrune extends PlannedPrune {
  /** Versions that stay and call it, directly or through others. */
  readonly calledBy: readonly Skill[];
}

export interface PruneInput {
  readonly tenant: string;
  /** null: every owner of the tenant. */
  readonly agent: string | null;
  readonly policy: PrunePolicy;
  /** Names this pruning for `undoPrune`; the same again finishes what a crash left of it. Letters, digits and "-". */
  readonly pruneId: string;
  readonly by: string;
  readonly dryRun: boolean;
  /** ms since 1970 */
  readonly at: number;
}

export interface HygieneDeps {
  readonly procedural: SkillShelf & Pick<SkillRegistry, 'move'>;
}

const DAY_MS = 86_400_000;

export interface Pruned {
  readonly pruned: readonly PlannedPrune[];
  readonly kept: readonly KeptFromPrune[];
}

/**
 * Archives what the policy names, callers first, and answers it with why, and what stays since something calls it; `undoPrune` is the way back.
 * A dry run is the same without the moves.
 *
 * @throws EtudeError ABORTED where somebody moved one of them meanwhile, MEMORY_UNAVAILABLE; what was archived until then stays so
 */
export async function pruneSkills(input: PruneInput, { procedural }: HygieneDeps): Promise<Pruned> {
  const { tenant, agent, policy, pruneId, by, dryRun, at } = input;
  const skills = await everySkill(procedural, { tenant, agent: null });
  const before = skills.flatMap((skill) => prunedBefore(skill, pruneId));
  const { pruned: planned, kept } = planPrune(skills, { agent, policy, at });
  const answer = { pruned: [...before, ...planned], kept };
  if (dryRun || planned.length === 0) return answer;
  await procedural.move(planned.map(({ skill, reason }) => moveTo(skill, 'archived', { by, reason: `${mark(pruneId)} ${reason}`, at })));
  return answer;
}

/**
 * What a policy takes out of sight, callers first; and what it names as well, and leaves: a skill that stays calls it, and was verified
 * with exactly that version.
 */
export function planPrune(skills: readonly Skill[], input: Pick<PruneInput, 'agent' | 'policy' | 'at'>): Pruned {
  const reasons = reasonsByVersion(skills, input);
  const named = skills.filter((skill) => reasons.has(versionKey(skill)));
  const staying = skills.filter((skill) => LIVING.has(skill.status) && !reasons.has(versionKey(skill)));
  const [needed, stays, callers] = [neededBy(staying, skills), new Set(staying), callersByCalled(skills)];
  const isNeeded = (skill: Skill) => needed.has(versionKey(skill));
  const plannedOf = (skill: Skill): PlannedPrune => ({ skill, reason: reasons.get(versionKey(skill)) ?? '' });
  const calledBy = (skill: Skill) => everyCaller(skill, callers).filter((caller) => stays.has(caller));
  return {
    pruned: callersFirst(named.filter((skill) => !isNeeded(skill))).map(plannedOf),
    kept: named.filter(isNeeded).map((skill) => ({ ...plannedOf(skill), calledBy: calledBy(skill) })),
  };
}

function callersByCalled(skills: readonly Skill[]): ReadonlyMap<string, readonly Skill[]> {
  const callers = new Map<string, Skill[]>();
  for (const skill of skills) for (const key of calledVersions(skill)) callers.set(key, [...(callers.get(key) ?? []), skill]);
  return callers;
}

/** Directly or through others. */
function everyCaller(called: Skill, callers: ReadonlyMap<string, readonly Skill[]>): readonly Skill[] {
  const found = new Set<Skill>();
  const open = [...(callers.get(versionKey(called)) ?? [])];
  for (let skill = open.pop(); skill !== undefined; skill = open.pop()) {
    if (found.has(skill)) continue;
    found.add(skill);
    open.push(...(callers.get(versionKey(skill)) ?? []));
  }
  return [...found];
}

/** Why the policy names a version. */
function reasonsByVersion(
  skills: readonly Skill[],
  { agent, policy, at }: Pick<PruneInput, 'agent' | 'policy' | 'at'>,
): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>();
  for (const skill of skills) {
    const reason = agent === null || skill.scope.agent === agent ? reasonToPrune(skill, policy, at) : null;
    if (reason !== null) reasons.set(versionKey(skill), reason);
  }
  return reasons;
}

/** Everything that these call, directly or by what they call. */
function neededBy(roots: readonly Skill[], skills: readonly Skill[]): ReadonlySet<string> {
  const byKey = new Map(skills.map((skill) => [versionKey(skill), skill]));
  const needed = new Set<string>();
  const open = roots.flatMap(calledVersions);
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    if (needed.has(key)) continue;
    needed.add(key);
    const skill = byKey.get(key);
    if (skill !== undefined) open.push(...calledVersions(skill));
  }
  return needed;
}

function reasonToPrune(skill: Skill, { unusedDays, failing, supersededDays }: PrunePolicy, at: number): string | null {
  const { status, kind, successRate } = skill;
  // What was told in words is read, not run: no count tells whether anybody needs it.
  if (kind === 'procedure' && skill.code === '') return null;
  if (status === 'deprecated' && supersededDays !== undefined) {
    const days = daysSince(sinceWhen(skill, 'deprecated'), at);
    return days >= supersededDays ? `deprecated for ${daysText(days)}` : null;
  }
  if (status !== 'active') return null;
  const uses = usesOf(skill);
  if (failing !== undefined && uses >= failing.usesMin && successRate < failing.rateMax)
    return `success rate ${successRate.toFixed(2)} after ${uses} ${uses === 1 ? 'use' : 'uses'}`;
  const idle = daysSince(Math.max(lastUseOf(skill), sinceWhen(skill, 'active')), at);
  return unusedDays !== undefined && idle >= unusedDays ? `not used for ${daysText(idle)}` : null;
}

const daysText = (days: number) => `${days} ${days === 1 ? 'day' : 'days'}`;
const daysSince = (since: number, at: number) => Math.floor((at - since) / DAY_MS);

function lastUseOf({ usage, executionCount, updatedAt }: Skill): number {
  return usage?.lastUsedAt ?? (executionCount > 0 ? updatedAt : 0);
}

function sinceWhen({ history = [], updatedAt, createdAt, usage }: Skill, status: SkillStatus): number {
  const change = history.findLast(({ to }) => to === status);
  return change?.at ?? (usage === undefined ? updatedAt : createdAt);
}

/**
 * What a pruning of before answers to a repeat of its request: what it archived, whatever became of it since, and what it would leave by
 * now. Nothing is moved.
 */
export async function prunedBy(
  { tenant, agent, policy, pruneId, at }: Omit<PruneInput, 'by' | 'dryRun'>,
  { procedural }: { readonly procedural: SkillShelf },
): Promise<Pruned> {
  const skills = await everySkill(procedural, { tenant, agent: null });
  const pruned = skills.filter(({ history = [] }) => history.some((change) => isBy(change, pruneId)));
  const reasonOf = ({ history = [] }: Skill) =>
    history.find((change) => isBy(change, pruneId))?.reason.slice(mark(pruneId).length + 1) ?? '';
  const { kept } = planPrune(skills, { agent, policy, at });
  return { pruned: callersFirst(pruned).map((skill) => ({ skill, reason: reasonOf(skill) })), kept };
}

const isBy = ({ to, reason }: SkillChange, pruneId: string) => to === 'archived' && reason.startsWith(`${mark(pruneId)} `);
const mark = (pruneId: string) => `pruned (${pruneId}):`;

/** Whether this is why pruning archived a skill, which says nothing against it. */
export const isPruning = (reason: string) => /^pruned \([^)]*\): /.test(reason);

/** What this pruning archived and nobody touched since. */
function prunedBefore(skill: Skill, pruneId: string): PlannedPrune[] {
  const last = skill.history?.at(-1);
  if (skill.status !== 'archived' || last === undefined || !isBy(last, pruneId)) return [];
  return [{ skill, reason: last.reason.slice(mark(pruneId).length + 1) }];
}

export interface UndoInput {
  readonly tenant: string;
  readonly pruneId: string;
  readonly by: string;
  /** ms since 1970 */
  readonly at: number;
}

/** Still archived, by this pruning. */
export interface LeftArchived {
  readonly skill: Skill;
  readonly reason: string;
}

export interface UndonePrune {
  readonly skills: readonly Skill[];
  readonly left: readonly LeftArchived[];
}

/**
 * Gives what one pruning archived its status back, where nobody touched it since and no other version is active in its place. What calls
 * one that stays archived is not active, nor waits for review, without it: it stays archived as well, until the same again finds that
 * back. Else the same again changes nothing.
 *
 * @returns what came back by this call, and what did not, with why
 * @throws EtudeError ABORTED, or FAILED_PRECONDITION, where somebody moved one of them, or what they call, meanwhile; MEMORY_UNAVAILABLE
 */
export async function undoPrune({ tenant, pruneId, by, at }: UndoInput, { procedural }: HygieneDeps): Promise<UndonePrune> {
  const { callable, left } = await planUndo(await everySkill(procedural, { tenant, agent: null }), pruneId, procedural);
  if (callable.length === 0) return { skills: [], left };
  const calledFirst = callersFirst(callable).toReversed();
  const moves = calledFirst.map((skill) => moveTo(skill, statusBefore(skill), { by, reason: undoReason(pruneId), at }));
  return { skills: await procedural.move(moves), left };
}

/** What an undo of before answers to a repeat of its request: what it brought back, as it is now, and what is still away. Nothing is moved. */
export async function undoneBy({ tenant, pruneId, at }: Omit<UndoInput, 'by'>, { procedural }: HygieneDeps): Promise<UndonePrune> {
  const skills = await everySkill(procedural, { tenant, agent: null });
  const undone = skills.filter(({ history = [] }) => history.some((change) => change.at === at && change.reason === undoReason(pruneId)));
  const { callable, left } = await planUndo(skills, pruneId, procedural);
  const free = callable.flatMap((skill) => leftFor(skill, 'it can come back by now; undo the pruning again with a new request_id'));
  return { skills: callersFirst(undone).toReversed(), left: [...left, ...free] };
}

const undoReason = (pruneId: string) => `undid the pruning ${pruneId}`;

async function planUndo(skills: readonly Skill[], pruneId: string, registry: Pick<SkillRegistry, 'versions'>) {
  const pruned = skills.filter((skill) => prunedBefore(skill, pruneId).length > 0);
  const replaced = pruned.flatMap((skill) => leftFor(skill, replacementReason(skill, skills)));
  const { callable, left: uncallable } = await withWhatTheyCall(notAmong(pruned, replaced), registry);
  return { callable, left: [...replaced, ...uncallable] };
}

const leftFor = (skill: Skill, reason: string | null): LeftArchived[] => (reason === null ? [] : [{ skill, reason }]);

function notAmong(skills: readonly Skill[], left: readonly LeftArchived[]): readonly Skill[] {
  const out = new Set(left.map(({ skill }) => skill));
  return skills.filter((skill) => !out.has(skill));
}

/** Without those that would be in use and can't call what they were verified with, as long as that takes others with it. */
async function withWhatTheyCall(
  pruned: readonly Skill[],
  registry: Pick<SkillRegistry, 'versions'>,
): Promise<{ readonly callable: readonly Skill[]; readonly left: readonly LeftArchived[] }> {
  const view = versionsBehind(
    registry,
    pruned.map((skill) => ({ ...skill, status: statusBefore(skill) })),
  );
  const left: LeftArchived[] = [];
  for (const skill of pruned) if (IN_USE.has(statusBefore(skill))) left.push(...leftFor(skill, await uncallableReason(view, skill)));
  if (left.length === 0) return { callable: pruned, left };
  const others = await withWhatTheyCall(notAmong(pruned, left), registry);
  return { callable: others.callable, left: [...left, ...others.left] };
}

const statusBefore = ({ history = [] }: Skill): SkillStatus => history.at(-1)?.from ?? 'active';

/** null where it was not in use, or no other version is. */
function replacementReason(skill: Skill, skills: readonly Skill[]): string | null {
  const inUse =
    statusBefore(skill) === 'active' ? skills.find((other) => other.status === 'active' && isVersionOf(other, skill)) : undefined;
  return inUse === undefined ? null : `version ${inUse.version} is in use`;
}

/** Out of the status in which it was seen, and of no other. */
export function moveTo(skill: Skill, to: SkillStatus, { by, reason, at }: Pick<SkillMove, 'by' | 'reason' | 'at'>): SkillMove {
  return { key: keyOf(skill), from: [skill.status], to, by, reason, at };
}
