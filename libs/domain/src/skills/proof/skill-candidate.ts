import type { Scope, Skill, SkillTest } from '@etude/contracts/memory';
import type { Evaluator } from '@etude/contracts/task';
import { definesName } from '../../evaluation/answer-code.js';
import { rulesOf } from '../../evaluation/evaluators.js';
import { contentDigest } from '../content-digest.js';
import { newCandidate } from '../life/skill-life.js';
import { testsFrom } from './run-skill-tests.js';

interface SkillOrigin {
  readonly scope: Scope;
  readonly prompt: string;
  readonly fingerprint: string;
  readonly code: string;
  readonly description: string;
  /** Situations in which the skill will be useful. They are appended to the description. */
  readonly scenarios: readonly string[];
  readonly model: string | null;
  readonly scripted: boolean;
  /** Time in ms since 1970. */
  readonly at: number;
  /** Name that the model proposed. Empty if it proposed none. */
  readonly called?: string;
  /** Skills of the same owner. If a skill of another task has the name already, the new skill's name gets a number. */
  readonly others?: readonly NamedSkill[];
}

export type NamedSkill = Pick<Skill, 'name' | 'fingerprints'>;

export interface SolvedTask extends SkillOrigin {
  readonly taskId: string;
  readonly evaluator: Evaluator;
}

/** A candidate from code that its evaluator accepted. null if the evaluator has no cases that can become tests. */
export function buildSkillCandidate({ taskId, evaluator, ...origin }: SolvedTask): Skill | null {
  const { entryPoint = null } = rulesOf(evaluator);
  return candidateFromTests({ ...origin, entryPoint, tests: testsFrom(evaluator), sources: [`tasks/${taskId}`] });
}

/** A candidate from stored tests. null without tests or code. `sources` are the tasks or episodes from which it was learned. */
export function candidateFromTests(
  origin: SkillOrigin & { entryPoint: string | null; tests: readonly SkillTest[]; sources: readonly string[] },
): Skill | null {
  const { scope, prompt, fingerprint, entryPoint, sources, model, scripted, at, others = [] } = origin;
  const tests = [...origin.tests];
  if (tests.length === 0 || origin.code.trim() === '') return null;
  const code = standaloneCode(origin.code, tests, entryPoint);
  const kind = entryPoint === null || isCallable(code, entryPoint) ? 'function' : 'snippet';
  const name = freeName(skillName(prompt, entryPoint, origin.called), fingerprint, others);
  const found = { name, scope, kind, description: describe(origin), code, entryPoint, tests, model, scripted, at } as const;
  return newCandidate({ ...found, cues: [prompt], fingerprints: [fingerprint], sources: [...sources] });
}

/** The code, completed so that it works alone. An answer to `python_tests` may use the setup's imports and helpers, or be only the stub's body. */
function standaloneCode(code: string, tests: readonly SkillTest[], entryPoint: string | null): string {
  const python = tests.find((test) => test.kind === 'python');
  if (entryPoint === null || python === undefined) return code;
  const [run] = rulesOf({ ...python, kind: 'python_tests', entryPoint, public: false }).plan(code);
  if (run?.kind !== 'checked') return code;
  const answer = run.code.replace(/^\n+/, '');
  const ground = run.setup.trim();
  return ground === '' || answer.includes(ground) ? answer : inOneText(ground, answer);
}

/** Joins both texts, with `from __future__` imports first, as Python requires. */
function inOneText(ground: string, answer: string): string {
  const future = /^from __future__ import .+\n?/gm;
  const first = [...ground.matchAll(future), ...answer.matchAll(future)].map(([line]) => line.trim()).join('\n');
  const rest = [ground, answer].map((text) => text.replaceAll(future, '').replace(/^\n+/, '').trimEnd());
  return [first, ...rest].filter((text) => text !== '').join('\n\n\n');
}

/** Whether the entry point is a function. A skill is called across processes, which isn't possible with a class. */
function isCallable(code: string, entryPoint: string): boolean {
  return definesName(code, entryPoint) && !new RegExp(`^class[ \\t]+${entryPoint}\\b`, 'm').test(code);
}

function describe({ description, scenarios, prompt }: SkillOrigin): string {
  const text = description.trim() || prompt.trim().slice(0, 1_000);
  const uses = scenarios.map((scenario) => scenario.trim()).filter((scenario) => scenario !== '');
  return uses.length === 0 ? text : `${text}\n\nUse it for:\n${uses.map((use) => `- ${use}`).join('\n')}`;
}

const WORDS_MAX = 4;
const NAME_MAX = 72;
const NAMES_TRIED = 9;
const HASH_CHARS = 6;
const STOP_WORDS = new Set(
  'a an the of and or to in is it as for by with from on at you your that which each every please write python program function code given read reads line lines input text print prints output'.split(
    ' ',
  ),
);
const GENERIC_NAMES = new Set(['solve', 'solution', 'main', 'run', 'f', 'func', 'function', 'answer', 'candidate', 'task']);

const snake = (text: string) =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^[_0-9]+|_+$/g, '');

/** The name for the skill of a task: its entry point, else the model's proposal, else the first telling words of its prompt. */
export function skillName(prompt: string, entryPoint: string | null, called = ''): string {
  const words = snake(prompt.slice(0, 2_000)).split('_');
  const telling = words.filter((word) => word !== '' && !STOP_WORDS.has(word)).slice(0, WORDS_MAX);
  const entry = snake(entryPoint ?? '');
  const names = [GENERIC_NAMES.has(entry) ? '' : entry, snake(called), snake(telling.join('_')), entry, 'task'];
  return names.find((name) => name !== '')!.slice(0, NAME_MAX);
}

/** The names that `freeName` tries. Callers pass it the skills that have one of these names. */
export const namesLike = (name: string): readonly string[] =>
  Array.from({ length: NAMES_TRIED }, (_, at) => (at === 0 ? name : `${name}_${at + 1}`));

/** The name, numbered if other tasks have skills with it. Better code for the same task is a new version of that task's skill. */
function freeName(name: string, fingerprint: string, others: readonly NamedSkill[]): string {
  const isFree = (one: string) => {
    const known = others.filter((skill) => skill.name === one);
    return known.length === 0 || known.some(({ fingerprints }) => fingerprints.includes(fingerprint));
  };
  return namesLike(name).find(isFree) ?? `${name}_${contentDigest(fingerprint).slice(0, HASH_CHARS)}`;
}
