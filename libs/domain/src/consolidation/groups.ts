import type { Episode } from '@etude/contracts/memory';
import type { Embedder } from '../ports/embedder.js';
import { cosineOf } from '../retrieval/calibration.js';

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
