import type { FoundItem, ItemShow, RecalledItem, Skill } from '@etude/contracts/memory';
import { findMemories, recallsNothing, showFound } from '../recall/recall.js';
import { isInWords } from '../skills/content-digest.js';
import { isProven } from '../skills/proof/proof.js';
import type { RolloutContext } from './rollout-context.js';
import { isUnjudged } from '@etude/contracts/task';
import { isWithheld, probabilityOf, showKey } from '../lift/effects.js';
import type { ShowCounters } from '../ports/memory.js';
import { foundItem, type Recollected, type SearchedMemory, skillHit } from '../recall/recollect.js';
import type { DurableSteps } from './durable-steps.js';
import { budgetsOf } from './step-prompts.js';

/** Searches memory with the text `opening` (the model's draft or critique) and with the prompt, because memories often have the prompt's words. */
export async function findForTask(context: RolloutContext, opening: string): Promise<Recollected> {
  const { deps, spec, scope, rolloutId } = context;
  const { enabled } = await context.settings();
  const asked = {
    scope,
    cue: `${opening}\n\n${spec.prompt}`,
    // If the agent's skills are switched off, no skill is recalled.
    policy: { ...spec.memory, layers: spec.memory.layers.filter((layer) => layer !== 'procedural' || enabled) },
    rolloutId,
    tokensMax: budgetsOf(context).memory,
    // Only code needs a proof, so a skill in words can be shown without one.
    shows: (skill: Skill) => isInWords(skill) || isProven(skill, deps.checker),
  };
  return findMemories(asked, deps.withholding === undefined ? deps : { ...deps, counters: deps.withholding.counters });
}

/** @param found the result of an earlier search. If null, this step searches with `findForTask` */
export async function recallStep(
  context: RolloutContext,
  attempt: number,
  opening: string,
  found: Recollected | null = null,
): Promise<readonly RecalledItem[]> {
  const { steps, deps, spec } = context;
  const { memory } = spec;
  if (recallsNothing(memory)) return [];
  return steps.run(`a${attempt}.recall`, 'recall', async () => {
    const memories = found ?? (await findForTask(context, opening));
    const withheld = await withheldItems(context, attempt, memories.hits.map(foundItem));
    const { items: value, offered } = showFound(memories, withheld);
    if (offered.length > 0 && !memory.readOnly) await deps.procedural.countOffers(offered);
    const titles = value.map(({ title }) => title).join(', ');
    return { value, summary: value.length === 0 ? 'nothing recalled' : `recalled ${titles.slice(0, 200)}` };
  });
}

/** Withholds randomly chosen recalled items, to measure how much recall helps. */
export interface Withholding {
  /** Probability for each item, 0 to 1. At 0 nothing is withheld or counted. */
  readonly probability: number;
  readonly counters: ShowCounters;
}

const KEY = 'a1.shows';

export function journaledShows(steps: DurableSteps): ItemShow[] {
  return (steps.journaledUnder(KEY, KEY) as ItemShow[][]).flat();
}

/** The found items that are withheld from this rollout. Later attempts repeat the choices of the first attempt. */
async function withheldItems(context: RolloutContext, attempt: number, found: readonly FoundItem[]): Promise<readonly FoundItem[]> {
  const { deps, tenant, rolloutId, steps } = context;
  const { probability = 0, counters } = deps.withholding ?? {};
  if (probability === 0 || counters === undefined || found.length === 0) return [];
  const before = new Map(context.shows.map((show) => [showKey(show), show.shown]));
  const known = await counters.counters(tenant, found);
  const shows = found.map((item, at): ItemShow => ({
    ...item,
    shown: before.get(showKey(item)) ?? !isWithheld(rolloutId, item, probabilityOf(known[at] ?? null, probability)),
  }));
  const withheld = shows.filter(({ shown }) => !shown);
  if (attempt === 1) {
    const summary = `${withheld.length} of ${shows.length} memories withheld, to measure how much they help`;
    const drawn = await steps.run(KEY, 'record', async () => ({ value: shows, summary }));
    context.shows.splice(0, context.shows.length, ...drawn);
  }
  return withheld;
}

export function isWithheldFrom({ shows }: Pick<RolloutContext, 'shows'>, { kind, id }: Pick<ItemShow, 'kind' | 'id'>): boolean {
  return shows.some((show) => !show.shown && show.kind === kind && show.id === id);
}

/** Memory as the agent's tools search it: without the items that are withheld from the agent's rollout. */
export function searchedWithoutWithheld(context: RolloutContext): SearchedMemory {
  const { deps } = context;
  const isShown = (item: Pick<ItemShow, 'kind' | 'id'>) => !isWithheldFrom(context, item);
  return {
    episodic: { search: async (...asked) => (await deps.episodic.search(...asked)).filter(isShown) },
    semantic: { search: async (...asked) => (await deps.semantic.search(...asked)).filter(isShown) },
    procedural: {
      search: async (...asked) => (await deps.procedural.search(...asked)).filter(({ skill }) => isShown(skillHit(skill))),
    },
  };
}

/** Counts for each shown or withheld item whether the first attempt was right, and how many tokens the rollout used. */
export async function putShows({ attempts, deps, tenant, scope, rolloutId, spec, shows }: RolloutContext): Promise<void> {
  const first = attempts.find(({ attempt }) => attempt === 1);
  if (shows.length === 0 || first === undefined || isUnjudged(first.judgement) || spec.memory.readOnly) return;
  const tokens = attempts.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0);
  const right = first.judgement.verdict === 'AC';
  await deps.outbox.put(tenant, `${rolloutId}.shows`, { kind: 'shows', scope, shows: [...shows], right, tokens, at: first.at });
}
