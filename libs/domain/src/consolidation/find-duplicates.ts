import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '../ports/memory.js';
import { versionKey } from '../skills/life/call-graph.js';
import { isSameOwner } from '../skills/life/skill-life.js';
import { usesOf } from '../skills/life/usage.js';

/** Two active skills of one owner with nearly the same description. */
export interface Duplicate {
  /** The one that is used more, else succeeds more often, else is older. */
  readonly keep: Skill;
  readonly merge: Skill;
  /** Calibrated similarity of the descriptions. */
  readonly similarity: number;
}

/** "Nearly the same words". */
const SIMILARITY_MIN = 0.9;
const NEIGHBOURS = 5;
/** Most skills that one run compares, since each costs a search. */
const COMPARED_MAX = 500;
const DUPLICATES_MAX = 20;

/**
 * Finds active functions with nearly the same description. Merging is left to people. Each skill is proposed for removal at most once, and
 * never in favour of one that is itself proposed for removal.
 *
 * @param since ms since 1970; only skills changed since then are compared with the others
 * @throws EtudeError MEMORY_UNAVAILABLE; an AbortError when `signal` aborts
 */
export async function findDuplicates(
  skills: readonly Skill[],
  since: number,
  procedural: Pick<ProceduralMemory, 'search'>,
  signal: AbortSignal,
): Promise<readonly Duplicate[]> {
  const changed = skills.filter(({ status, kind, updatedAt }) => status === 'active' && kind === 'function' && updatedAt >= since);
  const found: Duplicate[] = [];
  for (const skill of changed.slice(0, COMPARED_MAX)) {
    signal.throwIfAborted();
    const near = await procedural.search(skill.scope, { text: skill.description, limit: NEIGHBOURS, similarityMin: SIMILARITY_MIN });
    found.push(...near.filter((other) => mayMerge(skill, other.skill)).map((other) => pairOf(skill, other)));
  }
  return withoutRepeats(found).slice(0, DUPLICATES_MAX);
}

/** Whether one skill can replace the other. */
function mayMerge(one: Skill, other: Skill): boolean {
  return one.name !== other.name && one.kind === other.kind && isSameOwner(one.scope, other.scope);
}

function pairOf(one: Skill, { skill: other, similarity }: { readonly skill: Skill; readonly similarity: number }): Duplicate {
  const order = usesOf(one) - usesOf(other) || one.successRate - other.successRate || other.createdAt - one.createdAt;
  const isBetter = order === 0 ? one.name < other.name : order > 0;
  const [keep, merge] = isBetter ? [one, other] : [other, one];
  return { keep, merge, similarity };
}

/** The most similar pairs come first. */
function withoutRepeats(found: readonly Duplicate[]): Duplicate[] {
  const role = new Map<string, 'keep' | 'merge'>();
  return found
    .toSorted((a, b) => b.similarity - a.similarity)
    .filter(({ keep, merge }) => {
      if (role.has(versionKey(merge)) || role.get(versionKey(keep)) === 'merge') return false;
      role.set(versionKey(merge), 'merge').set(versionKey(keep), 'keep');
      return true;
    });
}

/** A sentence for people, with the command that merges the two. */
export function describeDuplicate({ keep, merge, similarity }: Duplicate): string {
  const { agent, user } = keep.scope;
  const owner = user === null ? agent : `${agent} --user ${user}`;
  return `skills ${keep.name}@${keep.version} and ${merge.name}@${merge.version} of ${agent} seem to do the same (similarity ${similarity.toFixed(2)}); to merge them after a look: etude skills deprecate ${merge.name}@${merge.version} --agent ${owner} --replaced-by ${keep.name}`;
}
