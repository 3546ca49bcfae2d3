import { ConsolidatedAgent, type ConsolidationCounts } from '@etude/contracts/memory-upkeep';
import type { Episode, Skill } from '@etude/contracts/memory';
import { TENANT_AGENT, USER_AGENT } from '@etude/contracts/ids';
import { batchesOf } from '@etude/contracts/wire/batches';
import type { ConsolidationReport, ConsolidationUnit, ConsolidationUnits } from '../ports/consolidation-units.js';
import type { ChatModel, Embedder } from '../ports/model.js';
import type { EpisodicMemory, MemoryOutbox, SemanticMemory } from '../ports/memory.js';
import { groupEpisodes, pagesOf } from './pages.js';
import { mergeAll, planMerges, skillsToCompare } from './plan-merges.js';
import { describeUnit, type PlanDeps, type PlannedUnit, planUnit, readMark } from './plan.js';
import { canonicalJson, contentDigest } from '../skills/content-digest.js';
import { recall } from '../recall/recall.js';
import { isSameOwner } from '../skills/life/skill-life.js';
import { episodeKey } from '../trust/sources.js';

export interface ConsolidationInput {
  readonly run: string;
  readonly tenant: string;
  /** null means every agent of the tenant, one by one. */
  readonly agent: string | null;
  readonly days: number;
  readonly dryRun: boolean;
  /** Whether a plan is applied even if it makes recall worse. Default: false. */
  readonly force?: boolean;
  /** Time of the request for the run, in ms since 1970. A repeat has the same time, and therefore reads the same episodes. */
  readonly now: number;
  readonly budget: RunBudget;
}

export interface AgentDeps extends PlanDeps {
  readonly episodic: Pick<EpisodicMemory, 'every' | 'transitions' | 'search'>;
  readonly semantic: Pick<SemanticMemory, 'appliedAmong' | 'search'>;
  readonly embedder: Embedder;
  readonly units: ConsolidationUnits;
  readonly outbox: MemoryOutbox;
  readonly report: ConsolidationReport;
  /** Verifies a skill again, without waiting. `round` is the day's number: a repeat on that day starts nothing. If absent, nothing is verified. */
  readonly verifyAgain?: (skill: Skill, round: number) => Promise<unknown>;
  /** Whether a learned text holds no secret. */
  readonly mayStore: (text: string) => Promise<boolean>;
}

type RunOfAgent = ConsolidationInput & { readonly agent: string };

export const DAY_MS = 86_400_000;
/** Maximum number of episodes that are compared with each other at once. The time grows with the square of this number. */
const BATCH = { itemsMax: 2_000 };

/**
 * Consolidates one agent as one unit: plans all pages, and commits the plan if recall with the planned facts is no worse than before. Otherwise the
 * plan is gated: it changes nothing, and its episodes stay unread. Episodes are never changed.
 *
 * @param line a new line of the report. It is filled step by step, so it describes an agent that fails, too
 * @param spent what the run's other agents spent
 */
export async function consolidateAgent(
  run: RunOfAgent,
  line: ConsolidatedAgent,
  spent: Spent,
  deps: AgentDeps,
  signal: AbortSignal,
): Promise<ConsolidatedAgent> {
  const { agent, dryRun } = run;
  const { report, outbox, units } = deps;
  if (!dryRun) {
    await units.complete(run, outbox);
    if (await units.isApplied(run)) return appliedLine((await report.line(agent)) ?? line);
  }
  const plan = await planAgent(run, line, spent, deps, signal);
  const own = plan.skills.filter(({ scope }) => scope.agent === agent);
  const merges = planMerges(own);
  line.plan.push(...merges.map(({ into, from }) => `merge: ${from.name}@${from.version} into ${into.name}@${into.version}`));
  const unit = await unitOf(run, plan.pages, deps);
  const staged = await units.stage(unit);
  const isChange = unit.skills.length > 0 || staged.added + staged.reinforced > 0;
  const wrong = skillReason(unit.skills, plan.skills) || (isChange && !run.force ? await recallReason(plan.held, staged, deps) : '');
  if (wrong !== '') return { ...line, state: 'gated', reason: wrong };
  if (dryRun) return { ...line, state: isChange ? 'planned' : line.state };
  await mergeAll(merges, { by: 'consolidation', at: run.now }, deps.procedural);
  for (const skill of skillsToCompare(own)) await deps.verifyAgain?.(skill, Math.ceil(run.now / DAY_MS));
  if (unit.pages.length === 0 && unit.skills.length === 0) return line;
  const skills = unit.skills.map(({ scope: { user }, name, digest }) => ({ user, name, digest }));
  Object.assign(line, { factsAdded: staged.added, factsReinforced: staged.reinforced, skillsProposed: skills.length, skills });
  // Stored before the commit, because a repeat after the commit finds nothing left to plan.
  await report.putLine({ ...line, state: 'planned' });
  signal.throwIfAborted();
  await staged.commit(outbox);
  return appliedLine(line);
}

export const newLine = (agent: string): ConsolidatedAgent => ConsolidatedAgent.parse({ agent, state: 'unchanged' });

function appliedLine(line: ConsolidatedAgent): ConsolidatedAgent {
  const isChange = line.factsAdded + line.factsReinforced + line.skillsProposed > 0;
  return { ...line, state: isChange ? 'applied' : 'unchanged', reason: line.state === 'failed' ? '' : line.reason };
}

/** Plans the agent's pages until the budget is spent, and describes them in `line`. Returns held-back episodes (`held`), which test the plan. */
async function planAgent(run: RunOfAgent, line: ConsolidatedAgent, spent: Spent, deps: AgentDeps, signal: AbortSignal) {
  const { tenant, agent, days, now, budget } = run;
  const model = countedModel(deps.model, agent, deps.report, line);
  const skills = await skillsReadBy(run, deps);
  const planned: PlannedUnit[] = [];
  const held: HeldBack[] = [];
  for await (const batch of batchesOf(deps.episodic.every({ tenant, agent }, now - days * DAY_MS), BATCH)) {
    const groups = await groupEpisodes(batch, deps.embedder, signal);
    const read = await deps.semantic.appliedAmong(tenant, batch.map(readMark));
    line.episodesRead += batch.length;
    line.groups += groups.filter(({ length }) => length > 1).length;
    const pages = pagesOf(groups, (episode) => read.has(readMark(episode)));
    held.push(...heldBack(groups, new Set(pages.flatMap(({ unread }) => unread.map(({ id }) => id))), HELD_BACK_MAX - held.length));
    for (const page of pages) {
      signal.throwIfAborted();
      if (!page.confirms && !isWithin(budget, spent, line)) {
        if (planned.length === 0) line.state = 'left';
        line.reason = 'the budget of the run is spent; the next run reads the rest';
        return { pages: planned, held, skills };
      }
      const unit = await planUnit(page, { now, earlier: planned, skills }, { ...deps, model }, signal);
      planned.push(unit);
      line.plan.push(...describeUnit(unit));
      line.modelFailures += [unit.learned, unit.general.asked].filter((answer) => answer?.data === null).length;
      line.scripted ||= unit.learned?.scripted === true || unit.skill?.scripted === true;
    }
  }
  return { pages: planned, held, skills };
}

async function skillsReadBy({ tenant, agent }: RunOfAgent, { procedural }: Pick<AgentDeps, 'procedural'>): Promise<readonly Skill[]> {
  const owners = [agent, USER_AGENT, TENANT_AGENT].map((owner) => Array.fromAsync(procedural.every({ tenant, agent: owner })));
  return (await Promise.all(owners)).flat();
}

/** If the model's answer about a page could not be read, the page stays unread, and the next run tries it again. */
async function unitOf(
  { run, tenant, agent, now }: RunOfAgent,
  planned: readonly PlannedUnit[],
  deps: AgentDeps,
): Promise<ConsolidationUnit> {
  const pages = [];
  for (const { unitId: id, page, learned, facts } of planned) {
    if (learned?.data === null) continue;
    const safe = await Promise.all(facts.map(async (fact) => ((await deps.mayStore(fact.text)) ? [fact] : [])));
    pages.push({ id, facts: safe.flat(), read: page.unread.map((one) => ({ unitId: readMark(one), scope: one.scope })) });
  }
  return { run, tenant, agent, at: now, pages, skills: planned.flatMap(({ skill }) => skill ?? []) };
}

type Spent = Pick<ConsolidationCounts, 'modelCalls' | 'inputTokens' | 'outputTokens' | 'costUsd'>;

/** Maximum that a run may spend. 0 means no limit. */
export interface RunBudget {
  readonly modelCallsMax: number;
  readonly tokensMax: number;
}

function isWithin({ modelCallsMax, tokensMax }: RunBudget, ...spent: readonly Spent[]): boolean {
  const sum = (count: (one: Spent) => number) => spent.reduce((total, one) => total + count(one), 0);
  const calls = sum(({ modelCalls }) => modelCalls);
  const tokens = sum(({ inputTokens, outputTokens }) => inputTokens + outputTokens);
  return (modelCallsMax === 0 || calls < modelCallsMax) && (tokensMax === 0 || tokens < tokensMax);
}

/** A model that adds its costs to `spent` and keeps its answers in the report. A run that continues after a crash reads these answers again. */
function countedModel(model: ChatModel, agent: string, report: Pick<ConsolidationReport, 'answer' | 'putAnswer'>, spent: Spent): ChatModel {
  return {
    async chat(request, signal) {
      spent.modelCalls += 1;
      const key = contentDigest([agent, request.messages]);
      const kept = await report.answer(key);
      const answer = kept ?? (await model.chat(request, signal));
      if (kept === null) await report.putAnswer(key, answer);
      for (const count of ['inputTokens', 'outputTokens', 'costUsd'] as const) spent[count] += answer[count];
      return answer;
    },
  };
}

type GateDeps = Pick<AgentDeps, 'episodic' | 'procedural'> & { readonly semantic: Pick<SemanticMemory, 'search'> };

/** Maximum number of held-back episodes. A plan is applied only if recall for their tasks is as good with the plan as without it. */
const HELD_BACK_MAX = 20;
const POLICY = { off: false, recallCount: 3, layers: ['episodic', 'semantic', 'procedural'] } satisfies Parameters<
  typeof recall
>[0]['policy'];
/** An id that no rollout has, because no id begins with a space. */
const NO_ROLLOUT = ' ';

/** A solved episode with the keys of its group's episodes, which teach the same lesson. */
interface HeldBack {
  readonly episode: Episode;
  readonly group: ReadonlySet<string>;
}

/** Chooses the held-back episodes. Episodes outside the plan come first. Otherwise the digest of the id decides the order. */
function heldBack(groups: readonly (readonly Episode[])[], planned: ReadonlySet<string>, countMax: number): readonly HeldBack[] {
  const order = ({ id }: Episode) => `${planned.has(id) ? 1 : 0} ${contentDigest(id)}`;
  const solved = groups.flatMap((episodes) => {
    const group = new Set(episodes.map(({ id }) => episodeKey(id)));
    return episodes.filter(({ success }) => success).map((episode) => ({ episode, group, order: order(episode) }));
  });
  return solved.toSorted((a, b) => (a.order < b.order ? -1 : 1)).slice(0, countMax);
}

/** Returns why a plan may not be applied, or ''. With the facts of `shadow`, recall must find a lesson for as many episodes as before. */
async function recallReason(held: readonly HeldBack[], shadow: GateDeps['semantic'], deps: GateDeps): Promise<string> {
  let [before, after] = [0, 0];
  for (const one of held) {
    before += (await showsOwn(one, deps)) ? 1 : 0;
    after += (await showsOwn(one, { ...deps, semantic: shadow })) ? 1 : 0;
  }
  if (after >= before) return '';
  return `recall would find the lesson of ${after} of ${held.length} held-back episodes, and finds ${before} without the plan`;
}

async function showsOwn({ episode: { scope, prompt }, group }: HeldBack, deps: GateDeps): Promise<boolean> {
  const { items } = await recall({ scope, cue: prompt, policy: POLICY, rolloutId: NO_ROLLOUT, shows: () => true }, deps);
  return items.some(({ kind, id, sources = [] }) => (kind === 'fact' ? sources : [id]).some((source) => group.has(episodeKey(source))));
}

/** Returns why a planned skill may not be proposed, or ''. It may not replace an active skill whose tests it doesn't have. */
function skillReason(planned: readonly Skill[], known: readonly Skill[]): string {
  for (const skill of planned) {
    const tests = new Set(skill.tests.map(canonicalJson));
    const active = known.filter(({ status, name, scope }) => status === 'active' && name === skill.name && isSameOwner(scope, skill.scope));
    const breaks = active.find((one) => !one.tests.every((test) => tests.has(canonicalJson(test))));
    if (breaks !== undefined)
      return `skill ${skill.name} would replace the active version ${breaks.version}, but lacks tests of that version`;
  }
  return '';
}
