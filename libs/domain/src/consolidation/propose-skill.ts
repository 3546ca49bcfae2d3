import type { Episode, Skill, SkillTest } from '@etude/contracts/memory';
import { candidateFromTests } from '../skills/proof/skill-candidate.js';
import { canonicalJson } from '../skills/content-digest.js';
import { withMarks } from '../trust/sources.js';

/** One success may be luck. */
const SUCCESSES_MIN = 2;
const TESTS_MAX = 1_000;

type Solved = Episode & { code: string; tests: SkillTest[] };

export interface Proposal {
  readonly description: string;
  readonly scenarios: readonly string[];
  /** The description was written from a script. */
  readonly scripted: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/**
 * A candidate from repeated success: the group's best solution with the tests that it passed. null where fewer than two episodes
 * succeeded, none kept its tests, or a skill covers the group: one, not rejected, that solved one of its tasks, or one with the same
 * code and tests, whatever became of it.
 */
export function proposeSkill(
  group: readonly Episode[],
  skills: readonly Skill[],
  { description, scenarios, scripted, at }: Proposal,
): Skill | null {
  if (group.filter(({ success }) => success).length < SUCCESSES_MIN) return null;
  if (skills.some((skill) => covers(skill, group))) return null;
  const best = bestOf(group);
  if (best === null) return null;
  const peers = group.filter(isSolved).filter((episode) => episode.code === best.code && episode.entryPoint === best.entryPoint);
  const candidate = candidateFromTests({
    ...best,
    tests: testsOf(best, peers),
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

/** Another user's skill is not for this group's. */
function covers({ status, scope, fingerprints }: Skill, group: readonly Episode[]): boolean {
  if (status === 'rejected' || (scope.user !== null && scope.user !== group[0]?.scope.user)) return false;
  return group.some(({ fingerprint }) => fingerprints.includes(fingerprint));
}

function isSolved(episode: Episode): episode is Solved {
  return episode.success && episode.code !== null && episode.tests !== undefined && episode.tests.length > 0;
}

/** Solved at the first attempt before later ones, then the shortest, then the oldest. */
function bestOf(group: readonly Episode[]): Solved | null {
  const solved = group.filter(isSolved);
  return (
    solved.toSorted(
      (a, b) => a.attempts - b.attempts || a.code.length - b.code.length || a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1),
    )[0] ?? null
  );
}

/** Cases of all tasks that this very code solved. Test code stays with its own task, whose setup it may need. */
function testsOf(best: Solved, peers: readonly Solved[]): SkillTest[] {
  if (best.tests.some(({ kind }) => kind === 'python')) return best.tests;
  const all = [best, ...peers].flatMap(({ tests }) => tests.filter(({ kind }) => kind === best.tests[0]?.kind));
  return [...new Map(all.map((test) => [canonicalJson(test), test])).values()].slice(0, TESTS_MAX);
}

/** What its words or its code may have been taken from: all of the group were read, by whoever wrote them or by the model that told of them. */
function seenBy(group: readonly Episode[]): string[] {
  return group.flatMap(({ id, experience, touched = [] }) => [...(experience === undefined ? [] : [`episodes/${id}`]), ...touched]);
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
