import type { Skill } from '@etude/contracts/memory';
import type { SkillChange, SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillMove, SkillRegistry } from '../../ports/skill-registry.js';
import { errorCode } from '@etude/contracts/errors';
import { calledVersions, callersFirst, versionKey } from './call-graph.js';
import { LIVING, moveOf } from './skill-life.js';
import { usesOf } from './usage.js';

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
  /** An earlier call with this id came to its end: nothing more is archived. */
  readonly isRepeat?: boolean;
  /** ms since 1970 */
  readonly at: number;
}

export interface PruneDeps {
  readonly procedural: Pick<SkillRegistry, 'every' | 'move'>;
}

const DAY_MS = 86_400_000;

export interface Pruned {
  readonly pruned: readonly PlannedPrune[];
  readonly kept: readonly KeptFromPrune[];
}

/**
 * Archives what the policy names, callers first. Answers what this pruning archived, now or before, with the reasons; and what it keeps
 * because other skills call it. `undoPrune` is the way back. A dry run is the same without the moves.
 *
 * @throws EtudeError ABORTED where somebody moved one of them meanwhile, MEMORY_UNAVAILABLE; what was archived until then stays so
 */
export async function pruneSkills(input: PruneInput, { procedural }: PruneDeps): Promise<Pruned> {
  const { tenant, pruneId, by, dryRun, at } = input;
  const before: Skill[] = [];
  const isNew = (skill: Skill) => {
    if (!(skill.history ?? []).some((change) => isBy(change, pruneId))) return true;
    before.push(skill);
    return false;
  };
  const { pruned: named, kept } = await planPrune(procedural.every({ tenant, agent: null }), { ...input, isNew });
  const pruned = input.isRepeat ? [] : named;
  if (!dryRun && pruned.length > 0)
    await procedural.move(pruned.map(({ skill, reason }) => moveOf(skill, 'archived', { by, reason: `${mark(pruneId)} ${reason}`, at })));
  const archived = callersFirst(before).map((skill) => ({ skill, reason: pruneReason(skill, pruneId) }));
  return { pruned: [...archived, ...pruned], kept };
}

type Plan = Pick<PruneInput, 'agent' | 'policy' | 'at'> & { readonly isNew?: (skill: Skill) => boolean };

/**
 * What a policy takes out of sight, callers first; and what it names as well and keeps, because a skill that stays was verified with
 * exactly that version.
 *
 * @param skills all of the tenant. Only those that are named, and those that call others, are held in memory
 */
export async function planPrune(
  skills: AsyncIterable<Skill> | Iterable<Skill>,
  { agent, policy, at, isNew = () => true }: Plan,
): Promise<Pruned> {
  const named = new Map<string, PlannedPrune>();
  const callers = new Map<string, Skill[]>();
  for await (const skill of skills) {
    const reason = isNew(skill) && (agent === null || skill.scope.agent === agent) ? reasonToPrune(skill, policy, at) : null;
    if (reason !== null) named.set(versionKey(skill), { skill, reason });
    for (const key of calledVersions(skill))
      callers
        .set(key, callers.get(key) ?? [])
        .get(key)
        ?.push(skill);
  }
  const staysAndCalls = (called: Skill) =>
    everyCaller(called, callers).filter((caller) => LIVING.has(caller.status) && !named.has(versionKey(caller)));
  const planned = [...named.values()].map((one) => ({ ...one, calledBy: staysAndCalls(one.skill) }));
  const free = new Map(planned.flatMap(({ skill, reason, calledBy }) => (calledBy.length === 0 ? [[skill, reason]] : [])));
  return {
    pruned: callersFirst([...free.keys()]).map((skill) => ({ skill, reason: free.get(skill) ?? '' })),
    kept: planned.filter(({ calledBy }) => calledBy.length > 0),
  };
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

const isBy = ({ to, reason }: SkillChange, pruneId: string) => to === 'archived' && reason.startsWith(`${mark(pruneId)} `);
const mark = (pruneId: string) => `pruned (${pruneId}):`;
const pruneReason = ({ history = [] }: Skill, pruneId: string) =>
  history.find((change) => isBy(change, pruneId))?.reason.slice(mark(pruneId).length + 1) ?? '';

/** Whether this is why pruning archived a skill, which says nothing against it. */
export const isPruning = (reason: string) => /^pruned \([^)]*\): /.test(reason);

export interface UndoInput {
  readonly tenant: string;
  readonly pruneId: string;
  readonly by: string;
  /** An earlier call with this `at` came to its end: nothing more is moved. */
  readonly isRepeat?: boolean;
  /** ms since 1970 */
  readonly at: number;
}

export interface UndonePrune {
  /** What this call gave back; a repeat with the same `at` answers the same ones. */
  readonly skills: readonly Skill[];
  /** What is still archived by this pruning, and why. */
  readonly left: readonly PlannedPrune[];
}

/**
 * Gives what one pruning archived its status back, where nobody touched it since: called skills before their callers. What the registry
 * refuses stays archived, such as where another version is active in its place, or a skill that it calls is archived; a later call may
 * give it back.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE
 */
export async function undoPrune({ tenant, pruneId, by, isRepeat = false, at }: UndoInput, { procedural }: PruneDeps): Promise<UndonePrune> {
  const reason = `undid the pruning ${pruneId}`;
  const pruned: Skill[] = [];
  const skills: Skill[] = [];
  for await (const skill of procedural.every({ tenant, agent: null })) {
    const { status, history = [] } = skill;
    const last = history.at(-1);
    if (status === 'archived' && last !== undefined && isBy(last, pruneId)) pruned.push(skill);
    if (history.some((change) => change.at === at && change.by === by && change.reason === reason)) skills.push(skill);
  }
  const left: PlannedPrune[] = [];
  for (const skill of callersFirst(pruned).toReversed()) {
    const why = isRepeat ? pruneReason(skill, pruneId) : await restored(skill, moveOf(skill, statusBefore(skill), { by, reason, at }));
    if (typeof why === 'string') left.push({ skill, reason: why });
    else skills.push(why);
  }
  return { skills, left };

  /** The skill, or why it stays archived. */
  async function restored(skill: Skill, move: SkillMove): Promise<Skill | string> {
    try {
      return (await procedural.move([move]))[0] ?? skill;
    } catch (error) {
      const code = errorCode(error);
      if (code !== 'ABORTED' && code !== 'FAILED_PRECONDITION') throw error;
      return (error as Error).message;
    }
  }
}

const statusBefore = ({ history = [] }: Skill): SkillStatus => history.at(-1)?.from ?? 'active';
