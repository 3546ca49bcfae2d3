import type { Episode, Skill, SkillTest } from '@etude/contracts/memory';
import { distinct } from '../skills/content-digest.js';
import { isSameOwner } from '../skills/life/skill-life.js';
import { newProcedure } from '../skills/life/told-procedure.js';
import { candidateFromTests, namesLike, skillName } from '../skills/proof/skill-candidate.js';
import { untrustedAmong, withMarks } from '../trust/sources.js';

/** A skill needs this many successes, because a single success may be luck. */
export const SUCCESSES_MIN = 2;
export const TESTS_MAX = 1_000;

export type Solved = Episode & { code: string; tests: SkillTest[] };

export interface Proposal {
  /** The name that the model proposed. Absent or empty if it proposed none. */
  readonly called?: string;
  readonly description: string;
  readonly scenarios: readonly string[];
  /** Whether the scripted model wrote the description. */
  readonly scripted: boolean;
  /** ms since 1970 */
  readonly at: number;
}

/**
 * Proposes a candidate from repeated success: the group's best solution, with the tests that it passed. Returns null if fewer than two episodes
 * succeeded, none kept its tests, or a skill covers the group. A skill covers the group if it has the same code and tests, or if it solved one of the
 * group's tasks and is not rejected.
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

function covers({ status, scope, fingerprints }: Skill, group: readonly Episode[]): boolean {
  if (status === 'rejected' || (scope.user !== null && scope.user !== group[0]?.scope.user)) return false;
  return group.some(({ fingerprint }) => fingerprints.includes(fingerprint));
}

export function isSolved(episode: Episode): episode is Solved {
  return episode.success && episode.code !== null && episode.tests !== undefined && episode.tests.length > 0;
}

function bestOf(group: readonly Episode[]): Solved | null {
  const solved = group.filter(isSolved);
  return (
    solved.toSorted(
      (a, b) => a.attempts - b.attempts || a.code.length - b.code.length || a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1),
    )[0] ?? null
  );
}

/** The cases of all tasks that this code solved. Tests in Python are taken only from the code's own task, because they may need its setup. */
function testsOf(best: Solved, peers: readonly Solved[]): SkillTest[] {
  if (best.tests.some(({ kind }) => kind === 'python')) return best.tests;
  const all = [best, ...peers].flatMap(({ tests }) => tests.filter(({ kind }) => kind === best.tests[0]?.kind));
  return distinct(all).slice(0, TESTS_MAX);
}

/** The possible sources of a skill's code and description. The author of these texts may have read all episodes of the group. */
export function seenBy(group: readonly Episode[]): string[] {
  return group.flatMap(({ id, experience, touched = [] }) => [...(experience === undefined ? [] : [`episodes/${id}`]), ...touched]);
}

export function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

const ACTIONS_MAX = 200;
const COMPARED_MAX = 50;
const WORDS_CHARS_MAX = 20_000;

type Told = Episode & Required<Pick<Episode, 'experience'>>;

/**
 * A procedure in words from reports of outside agents: the ordered actions that at least two successes share. Its success rate is the share of
 * successes among the group's episodes that used these actions. Returns null without such actions, or if the owner has a procedure with the same
 * words, whatever its status.
 *
 * @param skills skill versions that the owner can read
 * @param at ms since 1970
 */
export function procedureFromActions(group: readonly Episode[] | null, skills: readonly Skill[], at: number): Skill | null {
  const told = (group ?? []).filter(isUsable);
  const successes = told.filter(({ success }) => success).slice(-COMPARED_MAX);
  const steps = stepsOf(successes.map(actionsOf));
  const words = steps.map((step, index) => `${index + 1}. ${step.replaceAll('\n', '\n   ')}`).join('\n');
  if (steps.length === 0 || words.length > WORDS_CHARS_MAX) return null;
  const users = told.filter((episode) => commonOf(steps, actionsOf(episode)).length === steps.length);
  const [first] = users as [Told];
  const own = skills.filter(({ scope }) => isSameOwner(scope, first.scope));
  const sources = unique(users.flatMap(({ id, touched = [] }) => [`episodes/${id}`, ...untrustedAmong(touched)]));
  const name = freeName(skillName(first.prompt, null), sources, own);
  if (name === undefined) return null;
  const made = newProcedure(words, { name, scope: first.scope, sources, scripted: users.some((episode) => episode.scripted), at });
  if (own.some(({ digest }) => digest === made.digest)) return null;
  const cues = unique(users.map(({ prompt }) => prompt));
  const successRate = users.filter(({ success }) => success).length / users.length;
  return withMarks<Skill>({ ...made, origin: 'consolidation', cues, successRate });
}

function isUsable(episode: Episode): episode is Told {
  const { actions = [] } = episode.experience ?? {};
  return actions.length > 0 && actions.length <= ACTIONS_MAX;
}

const actionsOf = ({ experience }: Told) => experience.actions.map((action) => action.trim()).filter((action) => action !== '');

/** The ordered actions that the oldest possible success shares with later ones. A success that shares less than half of them is left out. */
function stepsOf(successes: ReadonlyArray<readonly string[]>): readonly string[] {
  for (const [at, first] of successes.entries()) {
    let steps = first;
    let support = 1;
    for (const other of successes.slice(at + 1)) {
      const common = commonOf(steps, other);
      if (common.length === 0 || common.length * 2 < Math.max(steps.length, other.length)) continue;
      steps = common;
      support += 1;
    }
    if (support >= SUCCESSES_MIN) return steps;
  }
  return [];
}

/** The longest common subsequence. */
function commonOf(a: readonly string[], b: readonly string[]): string[] {
  // lengths[i][j]: the length of the longest common subsequence of a.slice(i) and b.slice(j).
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i]![j] = a[i] === b[j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
  const common: string[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      common.push(a[i]!);
      i++;
      j++;
    } else if (lengths[i + 1]![j]! >= lengths[i]![j + 1]!) i++;
    else j++;
  }
  return common;
}

/** A name that the owner doesn't use, or uses only for a procedure that was learned from one of these episodes. */
function freeName(name: string, sources: readonly string[], own: readonly Skill[]): string | undefined {
  const isOfGroup = (skill: Skill) => skill.origin === 'consolidation' && skill.sources.some((source) => sources.includes(source));
  return namesLike(name).find((one) => own.every((skill) => skill.name !== one || (skill.kind === 'procedure' && isOfGroup(skill))));
}
