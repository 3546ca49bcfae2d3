import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '../ports/memory.js';
import { usesOf } from '../skills/life/usage.js';

/** Two active skills of one owner that seem to do the same. */
export interface Duplicate {
  /** The one that is used more, else succeeds more often, else is older. */
  readonly keep: Skill;
  readonly merge: Skill;
  /** Calibrated similarity of the descriptions; null where only their behaviour is alike. */
  readonly similarity: number | null;
  /** Each passes the tests of the other. */
  readonly behavesAlike: boolean;
}

export interface DuplicateQuery {
  readonly tenant: string;
  /** null: every owner of the tenant, each separately. */
  readonly agent: string | null;
  /** ms since 1970; only skills changed since then are compared with the others. */
  readonly since: number;
}

/** "Nearly the same words". */
const SIMILARITY_MIN = 0.9;
const NEIGHBOURS = 5;
/** Most skills that one run compares, since each costs a search. */
const COMPARED_MAX = 500;
const DUPLICATES_MAX = 20;

/**
 * Finds active skills with nearly the same description, or that pass each other's tests. Merging is left to people. Each skill is proposed
 * for removal at most once, and never in favour of one that is itself proposed for removal.
 *
 * @throws EtudeError MEMORY_UNAVAILABLE; an AbortError when `signal` aborts
 */
export async function findDuplicates(
  { tenant, agent, since }: DuplicateQuery,
  procedural: Pick<ProceduralMemory, 'every' | 'search'>,
  signal: AbortSignal,
): Promise<readonly Duplicate[]> {
  const active = await Array.fromAsync(procedural.every({ tenant, agent }, ['active']));
  const changed = active.filter(({ kind, updatedAt }) => kind === 'function' && updatedAt >= since).slice(0, COMPARED_MAX);
  const found: Duplicate[] = [];
  for (const skill of changed) {
    signal.throwIfAborted();
    const near = await procedural.search(
      { tenant, agent: skill.scope.agent, user: skill.scope.user },
      { text: skill.description, limit: NEIGHBOURS, similarityMin: SIMILARITY_MIN },
    );
    const behaving = active.filter((other) => behaveAlike(skill, other)).map((other) => ({ skill: other, similarity: null }));
    found.push(...[...near, ...behaving].filter((other) => mayMerge(skill, other.skill)).map((other) => pairOf(skill, other)));
  }
  return withoutRepeats(found).slice(0, DUPLICATES_MAX);
}

/** Whether one skill can replace the other: same kind, owner and user. */
function mayMerge(one: Skill, other: Skill): boolean {
  return one.name !== other.name && one.kind === other.kind && one.scope.agent === other.scope.agent && one.scope.user === other.scope.user;
}

/** Whether verification found that these very versions pass each other's tests. */
function behaveAlike(one: Skill, other: Skill): boolean {
  return findsAlike(one, other) || findsAlike(other, one);
}

function findsAlike({ proof }: Skill, { name: theirs, version: of, scope }: Skill): boolean {
  return (proof?.alike ?? []).some(
    ({ name, agent, user = scope.user, version, passesTheirs, theyPass }) =>
      name === theirs && version === of && agent === scope.agent && user === scope.user && passesTheirs && theyPass,
  );
}

function pairOf(one: Skill, { skill: other, similarity }: { readonly skill: Skill; readonly similarity: number | null }): Duplicate {
  const order = usesOf(one) - usesOf(other) || one.successRate - other.successRate || other.createdAt - one.createdAt;
  const isBetter = order === 0 ? one.name < other.name : order > 0;
  const [keep, merge] = isBetter ? [one, other] : [other, one];
  return { keep, merge, similarity, behavesAlike: behaveAlike(one, other) };
}

const keyOf = ({ scope, name }: Skill) => `${scope.agent} ${scope.user ?? ''} ${name}`;

/** Pairs that behave alike come first, since they are the surest. */
function withoutRepeats(found: readonly Duplicate[]): Duplicate[] {
  const given = new Set<string>();
  const kept = new Set<string>();
  return found
    .toSorted((a, b) => Number(b.behavesAlike) - Number(a.behavesAlike) || (b.similarity ?? 0) - (a.similarity ?? 0))
    .filter(({ keep, merge }) => {
      if (given.has(keyOf(merge)) || given.has(keyOf(keep)) || kept.has(keyOf(merge))) return false;
      given.add(keyOf(merge));
      kept.add(keyOf(keep));
      return true;
    });
}

/** A sentence for people, with the command that merges the two. */
export function describeDuplicate({ keep, merge, similarity, behavesAlike }: Duplicate): string {
  const why = [
    ...(similarity === null ? [] : [`similarity ${similarity.toFixed(2)}`]),
    behavesAlike ? 'each passes the tests of the other' : 'whether they behave alike is not known',
  ];
  const { agent, user } = keep.scope;
  const owner = user === null ? agent : `${agent} --user ${user}`;
  return `skills ${keep.name}@${keep.version} and ${merge.name}@${merge.version} of ${agent} seem to do the same (${why.join(', ')}); to merge them after a look: etude skills deprecate ${merge.name}@${merge.version} --agent ${owner} --replaced-by ${keep.name}`;
}
