import type { Episode } from '@etude/contracts/memory';

/** Maximum number of episodes in one prompt. */
const PAGE_SIZE = 12;
/** Episodes that were read before and are shown again, so that a new one can repeat what they tell. */
const COMPANY_MAX = 4;

/** Episodes that the model is shown at once. */
export interface EpisodePage {
  /** Oldest first. */
  readonly episodes: readonly Episode[];
  /** Those of them that no page had before. */
  readonly unread: readonly Episode[];
  /** The group of similar episodes, for a skill; null: the episodes are unlike each other, or another page has the group. */
  readonly group: readonly Episode[] | null;
}

/**
 * The pages for all episodes that weren't read yet. A group is read in pages of its own. Episodes without a group are read together, per
 * owner, if they can tell something alone: a reflection, or what an outside agent reports. The others wait until a similar one comes.
 */
export function pagesOf(groups: readonly (readonly Episode[])[], isRead: (episode: Episode) => boolean): readonly EpisodePage[] {
  const single = groups.flatMap((group) => (group.length === 1 ? group : [])).filter((episode) => tellsAlone(episode) && !isRead(episode));
  const owners = Map.groupBy(single, ({ scope: { agent, user } }) => JSON.stringify([agent, user]));
  const alone = [...owners.values()]
    .flatMap((episodes) => chunks(episodes))
    .map((episodes) => ({ episodes, unread: episodes, group: null }));
  return [...groups.filter(({ length }) => length > 1).flatMap((group) => groupPages(group, isRead)), ...alone];
}

function groupPages(group: readonly Episode[], isRead: (episode: Episode) => boolean): EpisodePage[] {
  const known = group.filter(isRead);
  return chunks(group.filter((episode) => !isRead(episode))).map((unread, at) => {
    const company = Math.min(COMPANY_MAX, PAGE_SIZE - unread.length);
    return { episodes: [...(company > 0 ? known.slice(-company) : []), ...unread], unread, group: at === 0 ? group : null };
  });
}

/** Whether one episode can support a rule about a named thing. */
export function tellsAlone({ reflection, experience }: Episode): boolean {
  return reflection !== null || experience !== undefined;
}

function chunks(episodes: readonly Episode[]): Array<readonly Episode[]> {
  const count = Math.ceil(episodes.length / PAGE_SIZE);
  return Array.from({ length: count }, (_, at) => episodes.slice(at * PAGE_SIZE, (at + 1) * PAGE_SIZE));
}
