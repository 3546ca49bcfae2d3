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

/** How many episodes judge a plan. */
export const HELD_BACK_MAX = 20;
const POLICY = { off: false, recallCount: 3, layers: ['episodic', 'semantic', 'procedural'] } satisfies Parameters<
  typeof recall
>[0]['policy'];
/** No record's id begins with it. */
const NO_ROLLOUT = ' ';

/** A solved episode with the keys of its group's episodes, which teach the same lesson. */
export interface HeldBack {
  readonly episode: Episode;
  readonly group: ReadonlySet<string>;
}

/** The solved episodes that judge a plan: first those outside the plan, then by the digest of their ids. */
export function heldBack(groups: readonly (readonly Episode[])[], planned: ReadonlySet<string>, countMax: number): readonly HeldBack[] {
  const order = ({ id }: Episode) => `${planned.has(id) ? 1 : 0} ${contentDigest(id)}`;
  const solved = groups.flatMap((episodes) => {
    const group = new Set(episodes.map(({ id }) => episodeKey(id)));
    return episodes.filter(({ success }) => success).map((episode) => ({ episode, group, order: order(episode) }));
  });
  return solved.toSorted((a, b) => (a.order < b.order ? -1 : 1)).slice(0, countMax);
}

/**
 * Why a plan may not be applied; empty if it may. Recall must show their group's lesson to at least as many held-back tasks as before.
 *
 * @param shadow finds facts as they would be after the plan
 */
export async function recallReason(held: readonly HeldBack[], shadow: GateDeps['semantic'], deps: GateDeps): Promise<string> {
  let [before, after] = [0, 0];
  for (const one of held) {
    before += (await showsOwn(one, deps)) ? 1 : 0;
    after += (await showsOwn(one, { ...deps, semantic: shadow })) ? 1 : 0;
  }
  return after >= before ? '' : `recall would show ${after} instead of ${before} of ${held.length} held-back episodes their own lesson`;
}

async function showsOwn({ episode: { scope, prompt }, group }: HeldBack, deps: GateDeps): Promise<boolean> {
  const { items } = await recall({ scope, cue: prompt, policy: POLICY, rolloutId: NO_ROLLOUT, shows: () => true }, deps);
  return items.some(({ kind, id, sources = [] }) => (kind === 'fact' ? sources : [id]).some((source) => group.has(episodeKey(source))));
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
