import type { Episode, Skill } from '@etude/contracts/memory';
import { namesLike, skillName } from '../skills/proof/skill-candidate.js';
import { isSameOwner, newCandidate } from '../skills/life/skill-life.js';
import { untrustedAmong, withMarks } from '../trust/sources.js';
import { SUCCESSES_MIN } from './propose-skill.js';

/** Experiences with more actions are left out, and only the newest successes are compared, since the time grows with the square. */
const ACTIONS_MAX = 200;
const COMPARED_MAX = 50;
const WORDS_CHARS_MAX = 20_000;

type Told = Episode & Required<Pick<Episode, 'experience'>>;

/**
 * A procedure in words from reports of outside agents: the ordered actions that at least two successes share. Its success rate is the share
 * of successes among the group's episodes that used these actions. null without such actions, or if the owner has a procedure with these
 * words, in use or not.
 *
 * @param skills versions that the owner can read
 * @param at ms since 1970
 */
export function procedureFromActions(group: readonly Episode[] | null, skills: readonly Skill[], at: number): Skill | null {
  const told = (group ?? []).filter((episode): episode is Told => isUsable(episode));
  const successes = told.filter(({ success }) => success).slice(-COMPARED_MAX);
  const steps = stepsOf(successes.map(actionsOf));
  const words = steps.map((step, index) => `${index + 1}. ${step.replaceAll('\n', '\n   ')}`).join('\n');
  if (steps.length === 0 || words.length > WORDS_CHARS_MAX) return null;
  const users = told.filter((episode) => commonOf(steps, actionsOf(episode)).length === steps.length);
  const [first] = users as [Told];
  const own = skills.filter(({ scope }) => isSameOwner(scope, first.scope));
  const sources = [...new Set(users.flatMap(({ id, touched = [] }) => [`episodes/${id}`, ...untrustedAmong(touched)]))];
  const name = freeName(skillName({ prompt: first.prompt, entryPoint: null, called: '' }), sources, own);
  if (name === undefined) return null;
  const inWords = {
    kind: 'procedure',
    code: '',
    entryPoint: null,
    parameters: [],
    tests: [],
    tags: [],
    model: null,
  } satisfies Partial<Skill>;
  const by = { scope: first.scope, sources, scripted: users.some((episode) => episode.scripted), at };
  const made = newCandidate({ ...inWords, ...by, name, description: words });
  if (own.some(({ digest }) => digest === made.digest)) return null;
  const cues = [...new Set(users.map(({ prompt }) => prompt))];
  const successRate = users.filter(({ success }) => success).length / users.length;
  return withMarks<Skill>({ ...made, origin: 'consolidation', cues, successRate });
}

function isUsable({ experience }: Episode): boolean {
  return experience !== undefined && experience.actions.length > 0 && experience.actions.length <= ACTIONS_MAX;
}

const actionsOf = ({ experience }: Told) => experience.actions.map((action) => action.trim()).filter((action) => action !== '');

/** The common actions of as many successes as go together, beginning with the oldest. Two go together if they share half their actions. */
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
  // lengths[i][j]: of the longest common subsequence of a from i and b from j.
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

/** A name that the owner doesn't use, or uses for a procedure that was learned from one of these episodes. */
function freeName(name: string, sources: readonly string[], own: readonly Skill[]): string | undefined {
  const isOfGroup = (skill: Skill) => skill.origin === 'consolidation' && skill.sources.some((source) => sources.includes(source));
  return namesLike(name).find((one) => own.every((skill) => skill.name !== one || (skill.kind === 'procedure' && isOfGroup(skill))));
}
