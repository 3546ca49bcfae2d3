import { ConsolidationRecord } from '@etude/contracts/memory-upkeep';
import type { Episode, Skill } from '@etude/contracts/memory';
import { batchesOf } from '@etude/contracts/wire/batches';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import type { Embedder } from '../ports/embedder.js';
import type { EpisodicMemory, MemoryOutbox } from '../ports/memory.js';
import { cosineOf } from '../retrieval/calibration.js';
import { contentDigest } from '../skills/content-digest.js';
import { pagesOf } from './pages.js';
import { describeUnit, type PlanDeps, type PlannedUnit, planUnit, readMark } from './plan.js';

export interface ConsolidationInput {
  readonly tenant: string;
  /** null: every agent of the tenant, each separately. */
  readonly agent: string | null;
  readonly days: number;
  readonly dryRun: boolean;
  /** When the run was requested, in ms since 1970; a repeat then reads the same episodes. */
  readonly now: number;
}

export interface ConsolidationDeps extends PlanDeps {
  readonly episodic: Pick<EpisodicMemory, 'every' | 'transitions'>;
  readonly embedder: Embedder;
  readonly outbox: MemoryOutbox;
  /** Waits until proposed skills are verified, for a limited time. Skills that are not settled by then are left out of the answer. */
  readonly settledStatuses: (skills: readonly Skill[], signal: AbortSignal) => Promise<readonly SkillStatus[]>;
  /** Called after every step, so that the run's record shows its progress even if it is cut off. */
  readonly progress?: (outcome: ConsolidationOutcome) => Promise<void>;
}

/** The fields of the record that a run fills in. */
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
  inputTokens: true,
  outputTokens: true,
  costUsd: true,
  plan: true,
  scripted: true,
});
export type ConsolidationOutcome = z.output<typeof Outcome>;

const DAY_MS = 86_400_000;
/** Number of episodes compared with each other at once, since the time grows with its square. */
const BATCH = { itemsMax: 2_000 };

/**
 * One pass over recent episodes: makes facts from what repeats and from rules about named things, and skill candidates from repeated
 * success, each with its sources. The model reads each episode once, in pages, except those that only confirm what their group told before.
 *
 * Everything is planned before anything is applied. A page is applied as one unit, whose mark is written last, with its facts. A crash
 * before the mark repeats the page; after it, a repeat calls no model and changes nothing. Episodes are never changed.
 * @throws EtudeError MODEL_UNAVAILABLE, MODEL_RATE_LIMITED, MODEL_REFUSED, MEMORY_UNAVAILABLE, MEMORY_FULL, QUEUE_UNAVAILABLE; an
 * AbortError when `signal` aborts. Whole units that were applied before stay.
 */
export async function consolidate(input: ConsolidationInput, deps: ConsolidationDeps, signal: AbortSignal): Promise<ConsolidationOutcome> {
  const { tenant, agent, days, dryRun, now } = input;
  const outcome = Outcome.parse({});
  const units: PlannedUnit[] = [];
  const skills = await Array.fromAsync(deps.procedural.every({ tenant, agent }));
  for await (const batch of batchesOf(deps.episodic.every({ tenant, agent }, now - days * DAY_MS), BATCH)) {
    const groups = await groupEpisodes(batch, deps.embedder, signal);
    const read = await deps.semantic.appliedAmong(tenant, batch.map(readMark));
    outcome.episodesRead += batch.length;
    outcome.groups += groups.filter(({ length }) => length > 1).length;
    for (const page of pagesOf(groups, (episode) => read.has(readMark(episode)))) {
      signal.throwIfAborted();
      const unit = await planUnit(page, { tenant, now, earlier: units, skills }, deps, signal);
      units.push(unit);
      addPlanned(outcome, unit);
      await deps.progress?.(outcome);
    }
  }
  if (dryRun) return outcome;

  for (const unit of units) {
    signal.throwIfAborted();
    await applyUnit(tenant, unit, outcome, deps);
    await deps.progress?.(outcome);
  }
  const proposed = units.flatMap(({ skill }) => skill ?? []);
  const statuses = proposed.length === 0 ? [] : await deps.settledStatuses(proposed, signal);
  outcome.skillsActivated = statuses.filter((status) => status === 'active').length;
  outcome.skillsRejected = statuses.filter((status) => status === 'rejected').length;
  return outcome;
}

const SPENT = ['modelCalls', 'inputTokens', 'outputTokens', 'costUsd'] as const;

function addPlanned(outcome: ConsolidationOutcome, unit: PlannedUnit): void {
  const { learned, skill } = unit;
  for (const count of SPENT) outcome[count] += learned?.[count] ?? 0;
  outcome.modelFailures += learned?.data === null ? 1 : 0;
  outcome.plan.push(...describeUnit(unit));
  outcome.scripted ||= learned?.scripted === true || skill?.scripted === true;
}

/** Puts the skill first, under an id made from its content, then facts and mark in one transaction; see `consolidate`. */
async function applyUnit(
  tenant: string,
  { unitId, page, known, learned, facts, skill }: PlannedUnit,
  outcome: ConsolidationOutcome,
  { outbox, semantic }: ConsolidationDeps,
): Promise<void> {
  if (known) return;
  if (skill !== null) {
    const { scope, name, digest } = skill;
    await outbox.put(tenant, `skill.${contentDigest([scope, name, digest]).slice(0, 40)}`, { kind: 'skill', skill });
    outcome.skillsProposed += 1;
  }
  // A page whose facts could not be read gets no mark, so that the next run tries it again.
  if (learned?.data === null) return;
  const { added, reinforced } = await semantic.applyFacts(
    tenant,
    unitId,
    facts,
    page.unread.map((episode) => ({ unitId: readMark(episode), scope: episode.scope })),
  );
  outcome.factsAdded += added;
  outcome.factsReinforced += reinforced;
}

/** From this calibrated similarity of prompts on, two tasks are "probably the same". */
const SIMILARITY_MIN = 0.7;

/**
 * Groups similar episodes; groups and their episodes are sorted oldest first.
 *
 * Episodes of one agent and user with the same fingerprint belong together. A task joins the group whose first task is most similar, at
 * least by `SIMILARITY_MIN`; otherwise it starts a group. The result doesn't depend on the order of the episodes. Comparing with first
 * tasks only keeps chains of small similarities from joining everything into one group.
 */
export async function groupEpisodes(episodes: readonly Episode[], embedder: Embedder, signal: AbortSignal): Promise<readonly Episode[][]> {
  const owners = Map.groupBy(episodes.toSorted(byAge), ({ scope }) => JSON.stringify([scope.agent, scope.user]));
  const groups: Episode[][] = [];
  for (const owned of owners.values()) {
    // Told experiences have no fingerprint, so only their similarity joins them.
    const tasks = [...Map.groupBy(owned, ({ id, fingerprint }) => fingerprint || id).values()];
    groups.push(...(await groupTasks(tasks, embedder, signal)));
  }
  return groups.toSorted((a, b) => byAge(a[0]!, b[0]!));
}

function byAge(a: Episode, b: Episode): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

/** @param tasks episodes of one task each, oldest first */
async function groupTasks(tasks: readonly Episode[][], embedder: Embedder, signal: AbortSignal): Promise<Episode[][]> {
  const prompts = tasks.map(([first]) => first!.prompt);
  const vectors = await embedder.embed(prompts, signal);
  const groups: Array<{ first: Float32Array; episodes: Episode[] }> = [];
  tasks.forEach((episodes, at) => {
    const vector = vectors[at]!;
    const near = groups
      .map((group) => ({ group, similarity: embedder.profile.calibrate(cosineOf(group.first, vector)) }))
      .filter(({ similarity }) => similarity >= SIMILARITY_MIN)
      .toSorted((a, b) => b.similarity - a.similarity)[0];
    if (near) near.group.episodes.push(...episodes);
    else groups.push({ first: vector, episodes: [...episodes] });
  });
  return groups.map(({ episodes }) => episodes.toSorted(byAge));
}
