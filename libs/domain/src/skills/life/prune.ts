import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillChange, SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillRegistry } from '../../ports/memory.js';
import { calledVersions, callersFirst, versionKey } from './call-graph.js';
import { GONE, moveOf, wasBefore } from './skill-life.js';
import { usesOf } from './usage.js';

/** The rules for archiving. A rule that is 0 or absent archives nothing. */
export interface PrunePolicy {
  /** Archives active versions that were neither used nor activated for at least this many days. */
  readonly unusedDays?: number;
  /** Archives active versions that were used at least `failingUsesMin` times and have a lower success rate than this. */
  readonly failingRateMax?: number;
  readonly failingUsesMin?: number;
  /** Archives versions that have been deprecated for at least this many days. */
  readonly supersededDays?: number;
}

export interface PlannedPrune {
  readonly skill: Skill;
  readonly reason: string;
}

/** A version that the policy names, but that stays because other versions call it. */
interface KeptFromPrune extends PlannedPrune {
  readonly calledBy: ReadonlyArray<Pick<Skill, 'name' | 'version' | 'scope'>>;
}

interface PruneInput {
  readonly tenant: string;
  /** null means every owner of the tenant. */
  readonly agent: string | null;
  /** If empty, nothing more is archived, and the answer lists the versions that this pruning archived before. */
  readonly policy: PrunePolicy;
  /** The name of this pruning, in letters, digits and "-". `undoPrune` takes it. A second call with the same name finishes the first call. */
  readonly pruneId: string;
  readonly by: string;
  readonly dryRun: boolean;
  /** ms since 1970 */
  readonly at: number;
}

interface PruneDeps {
  readonly procedural: Pick<SkillRegistry, 'every' | 'move'>;
}

/**
 * Archives the versions that the policy names, callers first. A version stays if a version that stays calls it. The answer includes versions that an
 * earlier call with the same id archived. A dry run only plans.
 *
 * @throws EtudeError ABORTED if somebody moved one of the versions meanwhile, MEMORY_UNAVAILABLE. Earlier moves are not undone
 */
export async function pruneSkills(input: PruneInput, { procedural }: PruneDeps) {
  const { tenant, agent, policy, pruneId, by, dryRun, at } = input;
  const before = new Map<Skill, string>();
  const named = new Map<Skill, string>();
  const calls: Array<{ readonly key: string; readonly caller: KeptFromPrune['calledBy'][number] }> = [];
  for await (const skill of procedural.every({ tenant, agent: null })) {
    const { name, version, scope, status } = skill;
    if (!GONE.has(status)) calls.push(...calledVersions(skill).map((key) => ({ key, caller: { name, version, scope } })));
    const done = skill.history?.find((change) => isBy(change, pruneId));
    const reason = done === undefined && (agent === null || skill.scope.agent === agent) ? reasonToPrune(skill, policy, at) : null;
    if (done !== undefined) before.set(skill, done.reason.slice(mark(pruneId).length));
    if (reason !== null) named.set(skill, reason);
  }
  const callers = Map.groupBy(calls, ({ key }) => key);
  const planned = new Map<string, Skill>();
  const kept: KeptFromPrune[] = [];
  // Callers come first, so that for each skill it is known which callers stay.
  for (const skill of callersFirst([...named.keys()])) {
    const calledBy = (callers.get(versionKey(skill)) ?? [])
      .map(({ caller }) => caller)
      .filter((caller) => !planned.has(versionKey(caller)));
    if (calledBy.length === 0) planned.set(versionKey(skill), skill);
    else kept.push({ skill, reason: named.get(skill) ?? '', calledBy });
  }
  const moves = [...planned.values()].map((skill) => moveOf(skill, 'archived', { by, reason: `${mark(pruneId)}${named.get(skill)}`, at }));
  if (!dryRun && moves.length > 0) await procedural.move(moves);
  const reasons = new Map([...before, ...named]);
  const pruned = [...callersFirst([...before.keys()]), ...planned.values()].map((skill) => ({ skill, reason: reasons.get(skill) ?? '' }));
  return { pruned, kept };
}

function reasonToPrune(skill: Skill, policy: PrunePolicy, at: number): string | null {
  const { unusedDays = 0, failingRateMax = 0, failingUsesMin = 0, supersededDays = 0 } = policy;
  const { status, kind, successRate } = skill;
  // A procedure in words is read, not run, so its counts don't show its use.
  if (kind === 'procedure' && skill.code === '') return null;
  if (status === 'deprecated' && supersededDays > 0) {
    const days = daysSince(sinceWhen(skill, 'deprecated'), at);
    return days >= supersededDays ? `deprecated for ${daysText(days)}` : null;
  }
  if (status !== 'active') return null;
  const uses = usesOf(skill);
  if (uses >= failingUsesMin && successRate < failingRateMax)
    return `success rate ${successRate.toFixed(2)} after ${uses} ${uses === 1 ? 'use' : 'uses'}`;
  const idle = daysSince(Math.max(skill.usage?.lastUsedAt ?? 0, sinceWhen(skill, 'active')), at);
  return unusedDays > 0 && idle >= unusedDays ? `not used for ${daysText(idle)}` : null;
}

const DAY_MS = 86_400_000;
const daysText = (days: number) => `${days} ${days === 1 ? 'day' : 'days'}`;
const daysSince = (since: number, at: number) => Math.floor((at - since) / DAY_MS);
const sinceWhen = ({ history = [], createdAt }: Skill, status: SkillStatus) => history.findLast(({ to }) => to === status)?.at ?? createdAt;

const mark = (pruneId: string) => `pruned (${pruneId}): `;
const isBy = ({ to, reason }: SkillChange, pruneId: string) => to === 'archived' && reason.startsWith(mark(pruneId));

/**
 * Restores the versions that one pruning archived. A version that somebody moved afterwards is left alone. `skills` were restored by this call, or by
 * an earlier call with the same `at`. `left` were refused by the registry and are still archived. A later call may restore them.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE
 */
export async function undoPrune(
  { tenant, pruneId, by, at }: Pick<PruneInput, 'tenant' | 'pruneId' | 'by' | 'at'>,
  { procedural }: PruneDeps,
) {
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
    try {
      skills.push(...(await procedural.move([moveOf(skill, wasBefore(skill) ?? 'active', { by, reason, at })])));
    } catch (error) {
      if (errorCode(error) !== 'ABORTED' && errorCode(error) !== 'FAILED_PRECONDITION') throw error;
      left.push({ skill, reason: (error as Error).message });
    }
  }
  return { skills, left };
}
