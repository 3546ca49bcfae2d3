import type { Scope, Skill, SkillTest } from '@etude/contracts/memory';
import type { Evaluator } from '@etude/contracts/task';
import { definesName } from '../../evaluation/answer-code.js';
import { rulesOf } from '../../evaluation/evaluators.js';
import { contentDigest } from '../content-digest.js';
import { newCandidate } from '../life/skill-life.js';
import { testsFrom } from './skill-tests.js';

export interface SkillOrigin {
  readonly scope: Scope;
  readonly prompt: string;
  readonly fingerprint: string;
  readonly code: string;
  readonly description: string;
  /** Situations in which the skill will be useful; appended to the description. */
  readonly scenarios: readonly string[];
  readonly model: string | null;
  readonly scripted: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface SolvedTask extends SkillOrigin {
  readonly taskId: string;
  readonly evaluator: Evaluator;
}

/** A candidate from code that its evaluator accepted, or null where the evaluator gives no test that could verify it. */
export function buildSkillCandidate({ taskId, evaluator, ...origin }: SolvedTask): Skill | null {
  const { entryPoint = null } = rulesOf(evaluator);
  return candidateFromTests({ ...origin, entryPoint, tests: testsFrom(evaluator), sources: [`tasks/${taskId}`] });
}

/** The same from tests that were kept. `sources` are where it came from: tasks or episodes. */
export function candidateFromTests(
  origin: SkillOrigin & { entryPoint: string | null; tests: readonly SkillTest[]; sources: readonly string[] },
): Skill | null {
  const { scope, prompt, fingerprint, entryPoint, sources, model, scripted, at } = origin;
  const tests = [...origin.tests];
  if (tests.length === 0 || origin.code.trim() === '') return null;
  const code = standaloneCode(origin.code, tests, entryPoint);
  const kind = entryPoint === null || isCallable(code, entryPoint) ? 'function' : 'snippet';
  const name = skillName(prompt, fingerprint, entryPoint);
  const found = { name, scope, kind, description: describe(origin), code, entryPoint, tests, model, scripted, at } as const;
  return newCandidate({ ...found, parameters: [], tags: [], cues: [prompt], fingerprints: [fingerprint], sources: [...sources] });
}

/** An answer to `python_tests` may lean on the setup's imports and helpers, or be the body of its stub; a skill stands alone. */
function standaloneCode(code: string, tests: readonly SkillTest[], entryPoint: string | null): string {
  const python = tests.find((test) => test.kind === 'python');
  if (entryPoint === null || python === undefined) return code;
  const [run] = rulesOf({ ...python, kind: 'python_tests', entryPoint, public: false }).plan(code);
  if (run?.kind !== 'checked') return code;
  const answer = run.code.replace(/^\n+/, '');
  const ground = run.setup.trim();
  return ground === '' || answer.includes(ground) ? answer : inOneText(ground, answer);
}

/** Python takes imports from `__future__` only before all other code. */
function inOneText(ground: string, answer: string): string {
  const future = /^from __future__ import .+\n?/gm;
  const first = [...ground.matchAll(future), ...answer.matchAll(future)].map(([line]) => line.trim()).join('\n');
  const rest = [ground, answer].map((text) => text.replaceAll(future, '').replace(/^\n+/, '').trimEnd());
  return [first, ...rest].filter((text) => text !== '').join('\n\n\n');
}

/** A class can be looked up but not called across processes as a skill is. */
function isCallable(code: string, entryPoint: string): boolean {
  return definesName(code, entryPoint) && !new RegExp(`^class[ \\t]+${entryPoint}\\b`, 'm').test(code);
}

function describe({ description, scenarios, prompt }: SkillOrigin): string {
  const text = description.trim() || prompt.trim().slice(0, 1_000);
  const uses = scenarios.map((scenario) => scenario.trim()).filter((scenario) => scenario !== '');
  return uses.length === 0 ? text : `${text}\n\nUse it for:\n${uses.map((use) => `- ${use}`).join('\n')}`;
}

const WORDS_MAX = 6;
const NAME_MAX = 80;
const HASH_CHARS = 6;
const STOP_WORDS = new Set('a an the of and or to in is you your that which please write python program function'.split(' '));

const snake = (text: string) =>
  text
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^[_0-9]+|_+$/g, '');

/**
 * A skill's name stands for one task: its entry point, or the first telling words of its prompt, and six characters of its
 * fingerprint. So better code for the same task is a new version, and another task whose entry point happens to be called
 * `solve` too is another skill.
 */
export function skillName(prompt: string, fingerprint: string, entryPoint: string | null): string {
  const words = snake(prompt.slice(0, 2_000)).split('_');
  const telling = words.filter((word) => word !== '' && !STOP_WORDS.has(word)).slice(0, WORDS_MAX);
  const base = (entryPoint === null ? '' : snake(entryPoint)) || snake(telling.join('_')) || 'task';
  return `${base.slice(0, NAME_MAX - HASH_CHARS - 1)}_${contentDigest(fingerprint).slice(0, HASH_CHARS)}`;
}
