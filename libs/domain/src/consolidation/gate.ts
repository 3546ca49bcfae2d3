import type { Episode, Skill } from '@etude/contracts/memory';
import type { EpisodicMemory, ProceduralMemory, SemanticMemory } from '../ports/memory.js';
import { recall } from '../recall/recall.js';
import { canonicalJson, contentDigest } from '../skills/content-digest.js';
import { isSameOwner } from '../skills/life/skill-life.js';
import { episodeKey } from '../trust/sources.js';

export interface GateDeps {
  readonly episodic: Pick<EpisodicMemory, 'search'>;
  readonly semantic: Pick<SemanticMemory, 'search'>;
  readonly procedural: Pick<ProceduralMemory, 'search'>;
}

const HELD_BACK_MAX = 20;
const POLICY = { off: false, recallCount: 3, layers: ['episodic', 'semantic', 'procedural'] } satisfies Parameters<
  typeof recall
>[0]['policy'];
/** No record's id begins with it. */
const NO_ROLLOUT = ' ';

/** The solved episodes by which a plan is judged: those that it wasn't made from first, then by the digest of their ids. */
export function heldBack(episodes: readonly Episode[], planned: ReadonlySet<Episode>): readonly Episode[] {
  const order = (episode: Episode) => `${planned.has(episode) ? 1 : 0} ${contentDigest(episode.id)}`;
  const solved = episodes.filter(({ success }) => success).map((episode) => [order(episode), episode] as const);
  return solved
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, HELD_BACK_MAX)
    .map(([, episode]) => episode);
}

/**
 * Why a plan may not be applied; empty where it may. Recall has to show as many of the held-back episodes their own lesson as before.
 *
 * @param shadow finds facts as they would be after the plan
 */
export async function recallReason(held: readonly Episode[], shadow: GateDeps['semantic'], deps: GateDeps): Promise<string> {
  let [before, after] = [0, 0];
  for (const episode of held) {
    before += (await showsOwn(episode, deps)) ? 1 : 0;
    after += (await showsOwn(episode, { ...deps, semantic: shadow })) ? 1 : 0;
  }
  return after >= before ? '' : `recall would show ${after} instead of ${before} of ${held.length} held-back episodes their own lesson`;
}

async function showsOwn({ id, scope, prompt }: Episode, deps: GateDeps): Promise<boolean> {
  const { items } = await recall({ scope, cue: prompt, policy: POLICY, rolloutId: NO_ROLLOUT, shows: () => true }, deps);
  return items.some((item) => (item.kind === 'fact' ? item.sources?.includes(id) : episodeKey(item.id) === episodeKey(id)));
}

/** Why a planned skill may not be proposed: it would replace an active one whose tests it doesn't have. Empty: it may. */
export function skillReason(planned: readonly Skill[], known: readonly Skill[]): string {
  for (const skill of planned) {
    const tests = new Set(skill.tests.map((test) => canonicalJson(test)));
    const breaks = known.find(
      (one) =>
        one.status === 'active' &&
        one.name === skill.name &&
        isSameOwner(one.scope, skill.scope) &&
        !one.tests.every((test) => tests.has(canonicalJson(test))),
    );
    if (breaks !== undefined) return `skill ${skill.name} would replace version ${breaks.version}, which is active, without its tests`;
  }
  return '';
}
