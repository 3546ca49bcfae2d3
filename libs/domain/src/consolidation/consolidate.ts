import { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import type { Episode, Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import type { Embedder } from '../ports/embedder.js';
import type { EpisodicMemory, MemoryOutbox } from '../ports/memory.js';
import { contentDigest } from '../skills/content-digest.js';
import { describeDuplicate, findDuplicates } from './find-duplicates.js';
import { groupEpisodes } from './group-episodes.js';
import { describeUnit, type PlanDeps, type PlannedUnit, planUnit, skillsByOwner } from './plan.js';

/** Verdicts of proposed skills. Waiting is bounded: a skill without a verdict in time is left out of the answer. */
export interface SkillVerifications {
  settled(skills: readonly Skill[], signal: AbortSignal): Promise<readonly SkillStatus[]>;
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
const Outcome = ConsolidationRecord.pick({
  episodesRead: true,
  groups: true,
  factsAdded: true,
  factsReinforced: true,
  skillsProposed: true,
  skillsActivated: true,
  skillsRejected: true,
  modelCalls: true,
  modelFailures: true,
  plan: true,
  scripted: true,
});
export type ConsolidationOutcome = z.output<typeof Outcome>;

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
  const since = now - days * DAY_MS;
  const outcome = Outcome.parse({});
  const units: PlannedUnit[] = [];
  const skillsOf = skillsByOwner(deps.procedural);
  for await (const batch of batches(deps.episodic.every({ tenant, agent }, since))) {
    const groups = (await groupEpisodes(batch, deps.embedder, signal)).filter((group) => group.length >= GROUP_SIZE_MIN);
    outcome.episodesRead += batch.length;
    outcome.groups += groups.length;
    for (const group of groups) {
      signal.throwIfAborted();
      const unit = await planUnit(group, { tenant, now, earlier: units, skillsOf }, deps, signal);
      units.push(unit);
      addPlanned(outcome, unit);
      await deps.progress?.(outcome);
    }
  }
  const duplicates = await findDuplicates({ tenant, agent, since }, deps.procedural, signal);
  outcome.plan.push(...duplicates.map(describeDuplicate));
  if (dryRun) return outcome;

  for (const unit of units) {
    signal.throwIfAborted();
    await applyUnit(tenant, unit, outcome, deps);
    await deps.progress?.(outcome);
  }
  const proposed = units.flatMap(({ skill }) => skill ?? []);
  const statuses = proposed.length === 0 ? [] : await deps.verifications.settled(proposed, signal);
  outcome.skillsActivated = statuses.filter((status) => status === 'active').length;
  outcome.skillsRejected = statuses.filter((status) => status === 'rejected').length;
  return outcome;
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

function addPlanned(outcome: ConsolidationOutcome, unit: PlannedUnit): void {
  const { learned, skill } = unit;
  outcome.modelCalls += learned?.modelCalls ?? 0;
  outcome.modelFailures += learned?.data === null ? 1 : 0;
  outcome.plan.push(...describeUnit(unit));
  outcome.scripted ||= learned?.scripted === true || skill?.scripted === true;
}

/** The skill first, under an id made from its content, then facts and mark in one transaction: see `consolidate`. */
async function applyUnit(
  tenant: string,
  { unitId, known, learned, facts, skill }: PlannedUnit,
  outcome: ConsolidationOutcome,
  { outbox, semantic }: ConsolidationDeps,
): Promise<void> {
  if (known) return;
  if (skill !== null) {
    const { scope, name, digest } = skill;
    await outbox.put(tenant, `skill.${contentDigest([scope, name, digest]).slice(0, 40)}`, { kind: 'skill', skill });
    outcome.skillsProposed += 1;
  }
  // Without its mark a group whose facts nobody could read is tried again by the next run.
  if (learned?.data === null) return;
  const { added, reinforced } = await semantic.applyFacts(tenant, unitId, facts);
  outcome.factsAdded += added;
  outcome.factsReinforced += reinforced;
}
