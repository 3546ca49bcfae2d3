import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillMove, SkillRegistry } from '../../ports/skill-registry.js';
import { calledVersions, callersFirst, everySkill, type SkillShelf, versionKey } from '../life/every-skill.js';

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
/** What may still run, or may once more without being stored again. */
const LIVE: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'pending_review', 'active']);

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
  const planned = planPrune(skills, { agent, policy, at });
  const answer = { pruned: [...before, ...planned], kept: keptFromPrune(skills, { agent, policy, at }) };
  if (dryRun || planned.length === 0) return answer;
  await procedural.move(planned.map(({ skill, reason }) => moveTo(skill, 'archived', { by, reason: `${mark(pruneId)} ${reason}`, at })));
  return answer;
}

/**
 * What a policy takes out of sight, callers first. Nothing that a skill still calls which stays: it was verified with exactly that version.
 */
export function planPrune(
  skills: readonly Skill[],
  { agent, policy, at }: Pick<PruneInput, 'agent' | 'policy' | 'at'>,
): readonly PlannedPrune[] {
  const { reasons, staying } = policyOn(skills, { agent, policy, at });
  const needed = neededBy(staying, skills);
  const pruned = skills.filter((skill) => reasons.has(versionKey(skill)) && !needed.has(versionKey(skill)));
  return callersFirst(pruned).map((skill) => ({ skill, reason: reasons.get(versionKey(skill)) ?? '' }));
}

/** What the policy names as well, and who needs it. */
export function keptFromPrune(
  skills: readonly Skill[],
  { agent, policy, at }: Pick<PruneInput, 'agent' | 'policy' | 'at'>,
): readonly KeptFromPrune[] {
  const { reasons, staying } = policyOn(skills, { agent, policy, at });
  const needed = neededBy(staying, skills);
  const kept = skills.filter((skill) => reasons.has(versionKey(skill)) && needed.has(versionKey(skill)));
  if (kept.length === 0) return [];
  const [callers, stays] = [callersByCalled(skills), new Set(staying)];
  return kept.map((skill) => ({
    skill,
    reason: reasons.get(versionKey(skill)) ?? '',
    calledBy: everyCaller(skill, callers).filter((caller) => stays.has(caller)),
  }));
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

/** Why the policy names a version, and which that may still run it leaves. */
function policyOn(skills: readonly Skill[], { agent, policy, at }: Pick<PruneInput, 'agent' | 'policy' | 'at'>) {
  const reasons = new Map<string, string>();
  for (const skill of skills) {
    const reason = agent === null || skill.scope.agent === agent ? reasonToPrune(skill, policy, at) : null;
    if (reason !== null) reasons.set(versionKey(skill), reason);
  }
  return { reasons, staying: skills.filter((skill) => LIVE.has(skill.status) && !reasons.has(versionKey(skill))) };
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

/** Skills of before uses were counted apart have only those that succeeded. */
export const usesOf = ({ usage, executionCount }: Skill) => Math.max(usage?.used ?? 0, executionCount);

function lastUseOf({ usage, executionCount, updatedAt }: Skill): number {
  return usage?.lastUsedAt ?? (executionCount > 0 ? updatedAt : 0);
}

function sinceWhen({ history = [], updatedAt, createdAt, usage }: Skill, status: SkillStatus): number {
  const change = history.findLast(({ to }) => to === status);
  return change?.at ?? (usage === undefined ? updatedAt : createdAt);
}

const mark = (pruneId: string) => `pruned (${pruneId}):`;

/** Whether this is why pruning archived a skill, which says nothing against it. */
export const isPruning = (reason: string) => /^pruned \([^)]*\): /.test(reason);

/** What this pruning archived and nobody touched since. */
function prunedBefore(skill: Skill, pruneId: string): PlannedPrune[] {
  const last = skill.history?.at(-1);
  if (skill.status !== 'archived' || last?.to !== 'archived' || !last.reason.startsWith(`${mark(pruneId)} `)) return [];
  return [{ skill, reason: last.reason.slice(mark(pruneId).length + 1) }];
}

export interface UndoInput {
  readonly tenant: string;
  readonly pruneId: string;
  readonly by: string;
  /** ms since 1970 */
  readonly at: number;
}

/**
 * Gives what one pruning archived its status back, where nobody touched it since and no other version is active in its place.
 * The same again changes nothing.
 *
 * @throws EtudeError ABORTED, MEMORY_UNAVAILABLE
 */
export async function undoPrune({ tenant, pruneId, by, at }: UndoInput, { procedural }: HygieneDeps): Promise<readonly Skill[]> {
  const skills = await everySkill(procedural, { tenant, agent: null });
  const pruned = skills.filter((skill) => prunedBefore(skill, pruneId).length > 0 && !isReplaced(skill, skills));
  if (pruned.length === 0) return [];
  const reason = `undid the pruning ${pruneId}`;
  const calledFirst = callersFirst(pruned).toReversed();
  return procedural.move(calledFirst.map((skill) => moveTo(skill, statusBefore(skill), { by, reason, at })));
}

const statusBefore = ({ history = [] }: Skill): SkillStatus => history.at(-1)?.from ?? 'active';

function isReplaced(skill: Skill, skills: readonly Skill[]): boolean {
  const { scope, name } = skill;
  return (
    statusBefore(skill) === 'active' &&
    skills.some(
      (other) => other.status === 'active' && other.name === name && other.scope.agent === scope.agent && other.scope.user === scope.user,
    )
  );
}

/** Out of the status in which it was seen, and of no other. */
export function moveTo(skill: Skill, to: SkillStatus, { by, reason, at }: Pick<SkillMove, 'by' | 'reason' | 'at'>): SkillMove {
  const { scope, name, version, digest } = skill;
  const key = { tenant: scope.tenant, agent: scope.agent, name, version, digest };
  return { key, from: [skill.status], to, by, reason, at };
}
