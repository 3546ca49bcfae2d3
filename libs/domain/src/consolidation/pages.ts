import type { Episode } from '@etude/contracts/memory';
import { episodeKey } from '../trust/sources.js';
import { SUCCESSES_MIN } from './propose-skill.js';
import type { Embedder } from '../ports/model.js';
import { cosineOf } from '../retrieval/calibration.js';

/** From this calibrated similarity of prompts on, two tasks are "probably the same". */
const SIMILARITY_MIN = 0.7;

/**
 * Groups similar episodes of one agent and user. Groups and their episodes are sorted oldest first. The order of `episodes` makes no difference. A
 * task is compared only with the first task of each group, because otherwise a chain of similar tasks could join everything into one group.
 */
export async function groupEpisodes(episodes: readonly Episode[], embedder: Embedder, signal: AbortSignal): Promise<readonly Episode[][]> {
  const owners = Map.groupBy(episodes.toSorted(byAge), ({ scope }) => JSON.stringify([scope.agent, scope.user]));
  const groups: Episode[][] = [];
  for (const owned of owners.values()) {
    // Told experiences have no fingerprint, so they are joined only by similarity.
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

const PAGE_SIZE = 12;
/** Maximum number of already read episodes that are shown again, so that a new episode can confirm their lesson. */
const COMPANY_MAX = 4;

/** Episodes that the model is shown at once. */
export interface EpisodePage {
  /** Oldest first. */
  readonly episodes: readonly Episode[];
  /** The episodes that were on no page before. */
  readonly unread: readonly Episode[];
  /** The similar episodes from which a skill can be made. null if the episodes aren't similar, or if another page has the group. */
  readonly group: readonly Episode[] | null;
  /** Whether the episodes only confirm their group's lesson. Then the model isn't asked. */
  readonly confirms: boolean;
}

/**
 * The pages for all episodes that weren't read yet. Each group has its own pages. Episodes without a group share pages, per owner, if each can teach
 * something alone by a reflection or an outside agent's report. All other episodes wait until a similar one comes.
 */
export function pagesOf(groups: readonly (readonly Episode[])[], isRead: (episode: Episode) => boolean): readonly EpisodePage[] {
  const single = groups.flatMap((group) => (group.length === 1 ? group : [])).filter((episode) => tellsAlone(episode) && !isRead(episode));
  const owners = Map.groupBy(single, ({ scope: { agent, user } }) => JSON.stringify([agent, user]));
  const alone = [...owners.values()]
    .flatMap((episodes) => chunks(episodes))
    .map((episodes) => ({ episodes, unread: episodes, group: null, confirms: false }));
  return [...groups.filter(({ length }) => length > 1).flatMap((group) => groupPages(group, isRead)), ...alone];
}

function groupPages(group: readonly Episode[], isRead: (episode: Episode) => boolean): EpisodePage[] {
  const known = group.filter(isRead);
  const confirming = confirmingAmong(group);
  const unread = group.filter((episode) => !isRead(episode));
  const asked = chunks(unread.filter((episode) => !confirming.has(episode))).map((episodes) => {
    const company = Math.min(COMPANY_MAX, PAGE_SIZE - episodes.length);
    return { episodes: [...(company > 0 ? known.slice(-company) : []), ...episodes], unread: episodes, confirms: false };
  });
  const sparing = chunks(unread.filter((episode) => confirming.has(episode)));
  const spared = sparing.map((episodes) => ({ episodes, unread: episodes, confirms: true }));
  return [...asked, ...spared].map((page, at) => ({ ...page, group: at === 0 ? group : null }));
}

/**
 * The episodes that teach nothing new. Their first attempt was right, with a skill or with a memory from an older episode of the group. Also, the
 * older episodes were enough for a skill. Whether episodes were read makes no difference. So a run makes the same pages after a crash.
 */
function confirmingAmong(group: readonly Episode[]): ReadonlySet<Episode> {
  const confirming = new Set<Episode>();
  const older = new Set<string>();
  let successes = 0;
  for (const episode of group) {
    const { id, touched = [], skillsUsed, success } = episode;
    const isHelped = skillsUsed.length > 0 || touched.some((source) => older.has(source));
    if (isHelped && successes >= SUCCESSES_MIN && isRightAtOnce(episode)) confirming.add(episode);
    older.add(`episodes/${episodeKey(id)}`);
    if (success) successes += 1;
  }
  return confirming;
}

function isRightAtOnce(episode: Episode): boolean {
  return episode.success && episode.attempts === 1 && episode.evaluatorKind !== 'none' && !tellsAlone(episode);
}

/** Whether one episode can support a rule about a named thing. */
export function tellsAlone({ reflection, experience }: Episode): boolean {
  return reflection !== null || experience !== undefined;
}

function chunks(episodes: readonly Episode[]): Array<readonly Episode[]> {
  const count = Math.ceil(episodes.length / PAGE_SIZE);
  return Array.from({ length: count }, (_, at) => episodes.slice(at * PAGE_SIZE, (at + 1) * PAGE_SIZE));
}
