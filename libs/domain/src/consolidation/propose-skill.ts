import type { Episode, Skill, SkillTest } from '@etude/contracts/memory';
import { candidateFromTests } from '../skills/proof/skill-candidate.js';
import { isSameOwner } from '../skills/life/skill-life.js';
import { withMarks } from '../trust/sources.js';
import { distinct } from '../skills/content-digest.js';

/** A single success may be luck. */
export const SUCCESSES_MIN = 2;
export const TESTS_MAX = 1_000;

export type Solved = Episode & { code: string; tests: SkillTest[] };

export interface Proposal {
  /** Name that the model proposed; absent or empty: none. */
  readonly called?: string;
  readonly description: string;
  readonly scenarios: readonly string[];
  /** The scripted model wrote the description. */
  readonly scripted: boolean;
  /** ms since 1970 */
  readonly at: number;
}

/**
 * Proposes a candidate from repeated success: the group's best solution, with the tests that it passed. null if fewer than two episodes
 * succeeded, none kept its tests, or a skill covers the group. A skill covers the group if it solved one of the group's tasks and is not
 * rejected, or if it has the same code and tests.
 */
export function proposeSkill(
  group: readonly Episode[],
  skills: readonly Skill[],
  { called = '', description, scenarios, scripted, at }: Proposal,
): Skill | null {
  if (group.filter(({ success }) => success).length < SUCCESSES_MIN) return null;
  if (skills.some((skill) => covers(skill, group))) return null;
  const best = bestOf(group);
  if (best === null) return null;
  const peers = group.filter(isSolved).filter((episode) => episode.code === best.code && episode.entryPoint === best.entryPoint);
  const candidate = candidateFromTests({
    ...best,
    tests: testsOf(best, peers),
    called,
    others: skills.filter(({ scope }) => isSameOwner(scope, best.scope)),
    description: description || best.summary,
    scenarios,
    scripted: best.scripted || scripted,
    at,
    sources: unique([...peers.map(({ id }) => id), ...seenBy(group)]),
  });
  if (candidate === null || skills.some(({ digest }) => digest === candidate.digest)) return null;
  return {
    ...withMarks(candidate),
    origin: 'consolidation',
    cues: unique(peers.map(({ prompt }) => prompt)),
    fingerprints: unique(peers.map(({ fingerprint }) => fingerprint)),
  };
}

/** Whether a skill covers the group. A skill of another user doesn't. */
function covers({ status, scope, fingerprints }: Skill, group: readonly Episode[]): boolean {
  if (status === 'rejected' || (scope.user !== null && scope.user !== group[0]?.scope.user)) return false;
  return group.some(({ fingerprint }) => fingerprints.includes(fingerprint));
}

export function isSolved(episode: Episode): episode is Solved {
  return episode.success && episode.code !== null && episode.tests !== undefined && episode.tests.length > 0;
}

/** The solution with the fewest attempts, then the shortest, then the oldest. */
function bestOf(group: readonly Episode[]): Solved | null {
  const solved = group.filter(isSolved);
  return (
    solved.toSorted(
      (a, b) => a.attempts - b.attempts || a.code.length - b.code.length || a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1),
    )[0] ?? null
  );
}

/** The cases of all tasks that this code solved. Test code is taken from its own task only, because it may need that task's setup. */
function testsOf(best: Solved, peers: readonly Solved[]): SkillTest[] {
  if (best.tests.some(({ kind }) => kind === 'python')) return best.tests;
  const all = [best, ...peers].flatMap(({ tests }) => tests.filter(({ kind }) => kind === best.tests[0]?.kind));
  return distinct(all).slice(0, TESTS_MAX);
}

/** The possible sources of the skill's words and code: its authors, or the model that described it, may have read the whole group. */
export function seenBy(group: readonly Episode[]): string[] {
  return group.flatMap(({ id, experience, touched = [] }) => [...(experience === undefined ? [] : [`episodes/${id}`]), ...touched]);
}

export function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
