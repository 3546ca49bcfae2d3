import type { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import type { Episode, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { Embedder } from '../ports/embedder.js';
import type { EpisodicMemory, MemoryOutbox } from '../ports/memory.js';
import { contentDigest } from '../skills/content-digest.js';
import { describeDuplicate, findDuplicates } from './find-duplicates.js';
import { groupEpisodes } from './group-episodes.js';
import { describeUnit, type PlanDeps, type PlannedUnit, planUnit, skillsByOwner } from './plan.js';

/** Verdicts of proposed skills. Waiting is bounded: a skill without a verdict in time is left out of the answer. */
export interface SkillVerifications {
  settled(tenant: string, skills: readonly Skill[], signal: AbortSignal): Promise<readonly SkillStatus[]>;
}

export interface ConsolidationInput {
  readonly tenant: string;
  /** null: every agent of the tenant, each by itself. */
  readonly agent: string | null;
  readonly days: number;
  readonly dryRun: boolean;
  /** When the run was asked for, ms since 1970: a repeat reads the same episodes. */
  readonly now: number;
}

export interface ConsolidationDeps extends PlanDeps {
  readonly episodic: Pick<EpisodicMemory, 'every'>;
  readonly embedder: Embedder;
  readonly outbox: MemoryOutbox;
  readonly verifications: SkillVerifications;
  /** Called after every step, so that the record of a run that is watched or cut off shows its progress. */
  readonly progress?: (outcome: ConsolidationOutcome) => Promise<void>;
}

/** The part of the record that a run fills in. */
export type ConsolidationOutcome = Pick<
  ConsolidationRecord,
  | 'episodesRead'
  | 'groups'
  | 'factsAdded'
  | 'factsReinforced'
  | 'skillsProposed'
  | 'skillsActivated'
  | 'skillsRejected'
  | 'modelCalls'
  | 'modelFailures'
  | 'plan'
  | 'scripted'
>;

const DAY_MS = 86_400_000;
/** Episodes that are compared with each other at once; comparing takes time by the square of their number. */
const BATCH_SIZE = 2_000;
const GROUP_SIZE_MIN = 2;

/**
 * One pass over recent episodes: facts from what repeats, skill candidates from repeated success, each with its sources.
 *
 * All is planned before anything is applied. A group is applied as one unit whose mark is written with its facts, last: a crash
 * before that repeats the group, a repeat after it asks no model and changes nothing. Episodes are never touched.
 * @throws EtudeError MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED, MEMORY_UNAVAILABLE, MEMORY_FULL, QUEUE_UNAVAILABLE; an
 *   AbortError when `signal` aborts. What was applied until then stays, whole units only.
 */
export async function consolidate(input: ConsolidationInput, deps: ConsolidationDeps, signal: AbortSignal): Promise<ConsolidationOutcome> {
  const { tenant, agent, days, dryRun, now } = input;
  const units: PlannedUnit[] = [];
  const skillsOf = skillsByOwner(deps.procedural);
  let outcome = NOTHING;
  for await (const batch of batches(deps.episodic.every({ tenant, agent }, now - days * DAY_MS))) {
    const groups = (await groupEpisodes(batch, deps.embedder, signal)).filter((group) => group.length >= GROUP_SIZE_MIN);
    outcome = { ...outcome, episodesRead: outcome.episodesRead + batch.length, groups: outcome.groups + groups.length };
    for (const group of groups) {
      signal.throwIfAborted();
      const unit = await planUnit(group, { tenant, now, earlier: units, skillsOf }, deps, signal);
      units.push(unit);
      outcome = withPlanned(outcome, unit);
      await deps.progress?.(outcome);
    }
  }
  outcome = await withDuplicates(input, outcome, deps, signal);
  if (dryRun) return outcome;

  for (const unit of units) {
    signal.throwIfAborted();
    outcome = await applyUnit(tenant, unit, outcome, deps);
    await deps.progress?.(outcome);
  }
  outcome = await mergeFacts(input, outcome, deps, signal);
  return countSettled(tenant, units, outcome, deps, signal);
}

async function* batches(episodes: AsyncIterable<Episode>): AsyncGenerator<readonly Episode[]> {
  let batch: Episode[] = [];
  for await (const episode of episodes) {
    batch.push(episode);
    if (batch.length < BATCH_SIZE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Names changed skills that seem to do the same, for people to decide. */
async function withDuplicates(
  { tenant, agent, days, now }: ConsolidationInput,
  outcome: ConsolidationOutcome,
  { procedural }: ConsolidationDeps,
  signal: AbortSignal,
): Promise<ConsolidationOutcome> {
  const found = await findDuplicates({ tenant, agent, since: now - days * DAY_MS }, procedural, signal);
  return found.length === 0 ? outcome : { ...outcome, plan: [...outcome.plan, ...found.map(describeDuplicate)] };
}

/** Merges facts of these days that several writers told at once, without seeing each other's. */
async function mergeFacts(
  { tenant, agent, days, now }: ConsolidationInput,
  outcome: ConsolidationOutcome,
  { semantic }: ConsolidationDeps,
  signal: AbortSignal,
): Promise<ConsolidationOutcome> {
  const done = await semantic.mergeDuplicates?.({ tenant, agent }, { since: now - days * DAY_MS, signal });
  if (done === undefined || done.merged + done.superseded === 0) return outcome;
  const line = `facts: ${done.merged} merged with others that say the same, ${done.superseded} superseded by newer ones`;
  return { ...outcome, plan: [...outcome.plan, line] };
}

const NOTHING: ConsolidationOutcome = {
  episodesRead: 0,
  groups: 0,
  factsAdded: 0,
  factsReinforced: 0,
  skillsProposed: 0,
  skillsActivated: 0,
  skillsRejected: 0,
  modelCalls: 0,
  modelFailures: 0,
  plan: [],
  scripted: false,
};

function withPlanned(outcome: ConsolidationOutcome, unit: PlannedUnit): ConsolidationOutcome {
  return {
    ...outcome,
    modelCalls: outcome.modelCalls + (unit.learned?.modelCalls ?? 0),
    modelFailures: outcome.modelFailures + (unit.learned?.lessons === null ? 1 : 0),
    plan: [...outcome.plan, ...describeUnit(unit)],
    scripted: outcome.scripted || unit.learned?.scripted === true || unit.skill?.scripted === true,
  };
}

/** The skill first, under an id made from its content, then facts and mark in one transaction: see `consolidate`. */
async function applyUnit(
  tenant: string,
  unit: PlannedUnit,
  outcome: ConsolidationOutcome,
  { outbox, semantic }: ConsolidationDeps,
): Promise<ConsolidationOutcome> {
  if (unit.known) return outcome;
  if (unit.skill !== null) await outbox.put(tenant, skillWriteId(unit.skill), { kind: 'skill', skill: unit.skill });
  const proposed = outcome.skillsProposed + (unit.skill === null ? 0 : 1);
  // Without its mark a group whose facts nobody could read is tried again by the next run.
  if (unit.learned?.lessons === null) return { ...outcome, skillsProposed: proposed };
  const { added, reinforced } = await semantic.applyFacts(tenant, unit.unitId, unit.facts);
  return {
    ...outcome,
    skillsProposed: proposed,
    factsAdded: outcome.factsAdded + added,
    factsReinforced: outcome.factsReinforced + reinforced,
  };
}

function skillWriteId({ scope, name, digest }: Skill): string {
  return `skill.${contentDigest([scope, name, digest]).slice(0, 40)}`;
}

async function countSettled(
  tenant: string,
  units: readonly PlannedUnit[],
  outcome: ConsolidationOutcome,
  { verifications }: ConsolidationDeps,
  signal: AbortSignal,
): Promise<ConsolidationOutcome> {
  const proposed = units.flatMap(({ skill }) => (skill === null ? [] : [skill]));
  if (proposed.length === 0) return outcome;
  const statuses = await verifications.settled(tenant, proposed, signal);
  const count = (wanted: SkillStatus) => statuses.filter((status) => status === wanted).length;
  return { ...outcome, skillsActivated: count('active'), skillsRejected: count('rejected') };
}
