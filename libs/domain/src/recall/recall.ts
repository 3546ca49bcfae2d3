import type { FoundItem, RecalledItem, Scope, Skill } from '@etude/contracts/memory';
import type { MemoryPolicy } from '@etude/contracts/task';
import type { MemoryHit, SkillRegistry } from '../ports/memory.js';
import { episodeKey, reasonsNotTrusted, type Shown, sourceOf, touchedSources, untrustedAmong } from '../trust/sources.js';
import { untrustedOfSkill } from '../skills/life/carried-over.js';
import { FINDING } from '../retrieval/entries.js';
import { searchSkills, viewOf } from '../skills/life/find-skill.js';
import { showKey } from '../lift/effects.js';
import { foundItem, RECALL_TOKENS, recollect, type RecollectDeps, type Recollected } from './recollect.js';
import { shownText } from './turn-text.js';

interface RecallInput {
  readonly scope: Scope;
  readonly cue: string;
  readonly policy: Pick<MemoryPolicy, 'recallCount' | 'layers' | 'off'>;
  /** Records of this rollout are not recalled, because they hold nothing from earlier tasks. */
  readonly rolloutId: string;
  readonly shows: (skill: Skill) => boolean;
  /** The most tokens of all items together. Default: `RECALL_TOKENS`. */
  readonly tokensMax?: number;
}

export interface Recalled {
  readonly items: readonly RecalledItem[];
  /** The skills among `items`. The caller counts them as offered. */
  readonly offered: Parameters<SkillRegistry['countOffers']>[0];
}

/** Twice as many skills are searched for as shown, because `shows` may leave some of them out. */
const FOUND_PER_SHOWN = 2;

export function recallsNothing({ off, recallCount, layers }: RecallInput['policy']): boolean {
  return off || recallCount === 0 || layers.length === 0;
}

/**
 * Recalls memories for a rollout by its policy. Skills come from all owners that its agent and user can read. If the rollout has no user, only
 * records without a user are recalled, because the rollout's records have no user either.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE, because a rollout must not silently go on without its memories
 */
export async function recall(input: RecallInput, deps: RecollectDeps): Promise<Recalled> {
  if (recallsNothing(input.policy)) return { items: [], offered: [] };
  return showFound(await findMemories(input, deps));
}

/** Searches memory for a cue. The found items include items that will be withheld later. @throws EtudeError as `recall` does */
export async function findMemories(
  { scope, cue, policy, rolloutId, shows, tokensMax = RECALL_TOKENS }: RecallInput,
  deps: RecollectDeps,
): Promise<Recollected> {
  const counts = Object.fromEntries(policy.layers.map((layer) => [layer, policy.recallCount]));
  // Findings are left out, because prompts show them in their own section.
  const leaveOut = ({ id, kind, title }: MemoryHit) => id.startsWith(rolloutId) || (kind === 'fact' && title === FINDING);
  const search: RecollectDeps['procedural']['search'] = async (_scope, { limit, ...query }) => {
    const found = await searchSkills(deps.procedural, scope, { ...query, limit: limit * FOUND_PER_SHOWN });
    return found.filter(({ skill }) => shows(skill)).slice(0, limit);
  };
  const asked = { scope: viewOf(scope, scope.user), cue, counts, tokensMax, leaveOut, skillsForAttempts: true };
  return recollect(asked, { ...deps, procedural: { search } });
}

/** The found items without the withheld items. Nothing replaces a withheld item. */
export function showFound({ hits, skills }: Recollected, withheld: readonly FoundItem[] = []): Recalled {
  const hidden = new Set(withheld.map(showKey));
  const shown = hits.filter((hit) => !hidden.has(showKey(foundItem(hit))));
  const offered = skills.filter((skill) => shown.some((hit) => isHitOf(skill, hit)));
  return {
    items: shown.map((hit) => plainItem(hit, skills)),
    offered: offered.map(({ scope: owner, name, version }) => ({ ...owner, name, version })),
  };
}

function isHitOf({ name, version, scope }: Skill, { kind, id, agent }: MemoryHit): boolean {
  return kind === 'skill' && `${name}@${version}` === id && scope.agent === agent;
}

export function itemOf({ id, layer, kind, title, text, score, similarity, sources = [] }: RecalledItem) {
  return { id, layer, kind, title, text, score, similarity, sources: [...sources] };
}

/** A hit as an item for a prompt. A fact keeps all its sources. Other memories keep only untrusted sources. */
function plainItem(hit: MemoryHit, skills: readonly Skill[]): RecalledItem {
  const { sources: _sources, ...item } = itemOf({ ...hit, text: shownText(hit) });
  const skill = skills.find((one) => isHitOf(one, hit));
  const sources = skill ? untrustedOfSkill(skill) : hit.kind === 'fact' ? hit.sources : untrustedAmong(hit.sources);
  return sources.length > 0 ? { ...item, sources } : item;
}

interface Provenance {
  /** Names with kind and id, such as "episodes/t0192f0c8a1b2-r1", "documents/d1f", or "facts/0a1b" for a fact told by somebody. */
  readonly origins: string[];
  readonly untrustedOrigins: string[];
}

/** A skill's origins are the records it was learned from. A fact's origins are its supporting records. Other memories are their own origin. */
export function provenanceOf({ id, kind, sources = [] }: Shown): Provenance {
  const origins = kind === 'skill' ? [...new Set(sources.map(originOf))] : touchedSources([{ id, kind, sources }]);
  return { origins, untrustedOrigins: origins.filter((origin) => reasonsNotTrusted([origin]).length > 0) };
}

function originOf(name: string): string {
  const source = sourceOf(name);
  return source?.kind === 'episodes' ? `episodes/${episodeKey(source.id)}` : name;
}
