import { type ErrorCode, errorCode } from '@etude/contracts/errors';
import { type ConsolidatedAgent, ConsolidationCounts } from '@etude/contracts/memory-upkeep';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { type AgentDeps, consolidateAgent, type ConsolidationInput, DAY_MS, newLine } from './consolidate-agent.js';

export interface ConsolidationDeps extends AgentDeps {
  /** Waits a limited time until proposed skills are verified. The answer leaves out skills whose verification takes longer. */
  readonly settledStatuses: (
    skills: ReadonlyArray<Pick<Skill, 'scope' | 'name' | 'digest'>>,
    signal: AbortSignal,
  ) => Promise<readonly SkillStatus[]>;
}

/** If this many agents fail in a row, the run stops, because they probably fail for the same reason. */
const FAILURES_MAX = 3;

/**
 * Consolidates the agents with recent episodes one by one, in the order of their names, and keeps a line about each. If an agent fails, the run goes
 * on with the next one. After three failures in a row it stops. A repeat skips agents that are done, and reuses the model's answers.
 *
 * @throws the first agent's error, after the other agents are done: EtudeError MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED,
 *   MEMORY_UNAVAILABLE, MEMORY_FULL, QUEUE_UNAVAILABLE; an AbortError when `signal` aborts
 */
export async function consolidate(input: ConsolidationInput, deps: ConsolidationDeps, signal: AbortSignal) {
  const { tenant, dryRun } = input;
  const { report } = deps;
  const totals = ConsolidationCounts.parse({});
  const proposed: Array<Pick<Skill, 'scope' | 'name' | 'digest'>> = [];
  const take = (line: ConsolidatedAgent) => {
    addCounts(totals, line);
    for (const { user, name, digest } of line.skills) proposed.push({ scope: { tenant, agent: line.agent, user }, name, digest });
  };
  const open: string[] = [];
  for (const agent of await agentsOf(input, deps)) {
    const line = await report.line(agent);
    if (line !== null && isOver(line, dryRun)) take(line);
    else open.push(agent);
  }
  const failures: unknown[] = [];
  let inARow = 0;
  for (const agent of open) {
    const begun = newLine(agent);
    const line = await consolidateAgent({ ...input, agent }, begun, totals, deps, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      return failedLine(begun, error, failures);
    });
    await report.putLine(line);
    take(line);
    await report.progress(totals);
    inARow = line.state === 'failed' ? inARow + 1 : 0;
    if (inARow === FAILURES_MAX) break;
  }
  if (failures.length > 0) throw failures[0];
  const statuses = dryRun || proposed.length === 0 ? [] : await deps.settledStatuses(proposed, signal);
  const countOf = (status: SkillStatus) => statuses.filter((one) => one === status).length;
  return { ...totals, skillsActivated: countOf('active'), skillsRejected: countOf('rejected') };
}

async function agentsOf({ tenant, agent, days, now }: ConsolidationInput, { episodic }: ConsolidationDeps): Promise<readonly string[]> {
  if (agent !== null) return [agent];
  const agents = new Set<string>();
  for await (const { scope } of episodic.every({ tenant, agent: null }, now - days * DAY_MS)) agents.add(scope.agent);
  return [...agents].toSorted();
}

const OVER: ReadonlySet<ConsolidatedAgent['state']> = new Set(['applied', 'unchanged', 'gated', 'undone']);
const isOver = ({ state }: ConsolidatedAgent, dryRun: boolean) => OVER.has(state) || (dryRun && state === 'planned');

/** After these errors an agent is left for the next run: its memory was erased during this run, or the tenant's budget for the day is spent. */
const LEFT: ReadonlySet<ErrorCode> = new Set(['ABORTED', 'BUDGET_USED_UP']);

function failedLine(begun: ConsolidatedAgent, error: unknown, failures: unknown[]): ConsolidatedAgent {
  const code = errorCode(error);
  if (!LEFT.has(code)) failures.push(error);
  const reason = `${code}: ${error instanceof Error ? error.message : String(error)}`;
  return { ...begun, state: LEFT.has(code) ? 'left' : 'failed', reason };
}

function addCounts(totals: ConsolidationCounts, line: ConsolidatedAgent): void {
  for (const [name, count] of Object.entries(line))
    if (typeof count === 'number') totals[name as Exclude<keyof ConsolidationCounts, 'scripted'>] += count;
  totals.scripted ||= line.scripted;
}
