import { episodeOf, plainSummary, type Lessons } from './attempt-record.js';
import type { RolloutContext } from './rollout-context.js';

export async function putEpisode(context: RolloutContext, lessons: Lessons): Promise<void> {
  const { deps, tenant, rolloutId, attempts } = context;
  await deps.outbox.put(tenant, `${rolloutId}.episode`, { kind: 'episode', episode: episodeOf(context, attempts, lessons) });
}

/** Where the last attempt solved the task and no lessons follow, the episode goes beside its transition: one wait instead of two. */
export async function keepSolved(context: RolloutContext): Promise<void> {
  const { attempts, spec } = context;
  if (spec.mode !== 'inference' || attempts.at(-1)?.judgement.verdict !== 'AC') return;
  await putEpisode(context, { summary: plainSummary(context, attempts, 'solved'), reflection: null });
}
