import type { Json } from '@etude/contracts/json';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import { TENANT_AGENT } from '@etude/contracts/ids';
import type { RunResult } from '@etude/contracts/sandbox';
import { sameValue } from '../../evaluation/compare.js';
import { canonicalJson, hasHiddenTests, distinct } from '../content-digest.js';
import type { Stage } from './proof.js';
import { runTests, SHORT_LIMITS, type TestPlace, type Trial } from './run-skill-tests.js';

type Input = Exclude<SkillTest, { kind: 'python' }>;

const INPUTS_MAX = 24;
/** With fewer new inputs than this, a skill isn't judged by them. */
const INPUTS_MIN = 4;
const NEEDED = 'add held-out tests, or tests of calls with arguments, from which new inputs can be made';
const REMEDY = 'if it has only a few possible answers, let two tests share an answer, or add held-out tests';

/**
 * A shared skill must work for more than the tests of its author. So it is run on new inputs, which are varied copies of its tests' inputs. Nobody
 * knows the right answers. But code that only knows its tests fails, gives the same answer to all inputs, or repeats answers of its tests.
 *
 * A correct skill with few possible answers, such as the names of months, may do the same. So a skill with held-out tests isn't refused, and the
 * reviewer gets a note instead. If no new inputs can be made, the skill needs held-out tests, or the cases of a task as tests.
 */
export async function answerNewInputs(skill: Skill, trial: Trial, place: TestPlace): Promise<Stage> {
  if (skill.scope.agent !== TENANT_AGENT) return {};
  const inputs = newInputs(skill.tests);
  if (inputs.length < INPUTS_MIN) return withoutNewInputs(skill);
  const results = await runTests({ ...trial, step: 'new-inputs', tests: inputs, limits: SHORT_LIMITS }, place);
  const generatedAnswers = results.filter((result) => answerOf(result) !== undefined).length;
  const problem = problemOf(skill.tests.filter(isInput), inputs, results);
  const isVouched = generatedAnswers > 0 && (skill.heldOut ?? []).length > 0;
  if (problem !== null && !isVouched) return { reason: `it may know only its tests: ${problem}; ${REMEDY}` };
  const doubt = problem === null ? [] : [`it may know only its tests and the held-out ones: ${problem}`];
  const evidence = [`it answers ${generatedAnswers} of ${inputs.length} inputs that no test has`, ...doubt];
  return { evidence, found: { generatedAnswers } };
}

function withoutNewInputs(skill: Skill): Stage {
  if (hasHiddenTests(skill)) return { evidence: ['its tests are cases of tasks, which its author did not write'] };
  if ((skill.heldOut ?? []).length > 0) return {};
  return { reason: `a skill that others share needs more than the tests of its author: ${NEEDED}` };
}

/** How the answers show that the code only knows its tests. null if they don't show this. */
function problemOf(tests: readonly Input[], inputs: readonly Input[], results: readonly RunResult[]): string | null {
  const expected = distinct(tests.map(expectedOf));
  const echoes = tests.some((test) => isEcho(test, expectedOf(test)));
  const answered = results.flatMap((result, at) => {
    const answer = answerOf(result);
    return answer === undefined || (!echoes && isEcho(inputs[at]!, answer)) ? [] : [answer];
  });
  const answers = distinct(answered);
  const of = `${inputs.length} inputs that no test has`;
  if (answers.length === 0) return `it answers none of ${of}`;
  if (expected.length > 1 && answers.length === 1) return `it gives the same answer for all of ${of}`;
  // If tests share answers, there are probably few possible answers, such as the names of months.
  const isOpen = expected.length > 2 && expected.length === tests.length;
  const isKnown = answers.every((answer) => expected.some((known) => sameValue(answer, known, 0)));
  return isOpen && isKnown ? `its answers for ${of} are all answers of its tests` : null;
}

const isInput = (test: SkillTest): test is Input => test.kind !== 'python';
const expectedOf = (test: Input): Json => (test.kind === 'io' ? test.expectedStdout.trim() : test.expected);
const isEcho = (test: Input, answer: Json) =>
  test.kind === 'io'
    ? test.stdin.trim() === answer
    : [...test.args, ...Object.values(test.kwargs)].some((given) => sameValue(given, answer, 0));

/** The answer of a run. undefined after an error, or if a program printed nothing. */
function answerOf({ exit, error, value, stdout }: RunResult): Json | undefined {
  if (exit !== 'ok' || error !== undefined) return undefined;
  return value === undefined ? stdout.trim() || undefined : value;
}

/** Variations of the tests' inputs, none of which is the input of a test. The tests take turns, so that each of them is varied. */
export function newInputs(tests: readonly SkillTest[]): Input[] {
  const given = tests.filter(isInput);
  const key = (input: Input) => canonicalJson(input.kind === 'io' ? input.stdin : [input.args, input.kwargs]);
  const found = new Map<string, Input>();
  const known = new Set(given.map(key));
  const near = given.map(neighboursOf);
  for (let at = 0; found.size < INPUTS_MAX && near.some((inputs) => at < inputs.length); at += 1) {
    for (const input of near.flatMap((inputs) => inputs[at] ?? [])) {
      if (!known.has(key(input)) && found.size < INPUTS_MAX) found.set(key(input), input);
    }
  }
  return [...found.values()];
}

function neighboursOf(test: Input): Input[] {
  if (test.kind === 'io') return nearText(test.stdin).map((stdin) => ({ ...test, stdin }));
  const byPlace = test.args.flatMap((value, at) => nearValues(value).map((near) => ({ ...test, args: test.args.with(at, near) })));
  const byName = Object.entries(test.kwargs).flatMap(([name, value]) =>
    nearValues(value).map((near) => ({ ...test, kwargs: { ...test.kwargs, [name]: near } })),
  );
  return [...byPlace, ...byName];
}

/** Variations of a value, of the same type. Objects with a "$" key stand for types that JSON lacks, and aren't varied. */
function nearValues(value: Json): Json[] {
  if (typeof value === 'number') return Number.isInteger(value) ? nearInteger(value) : [value * 1.5, value + 1, value / 2];
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'string') return nearText(value);
  if (Array.isArray(value)) {
    const first = nearValues(value[0] ?? null).slice(0, 2);
    return [value.slice(0, -1), value.toReversed(), [...value, ...value.slice(-1)], ...first.map((near) => value.with(0, near))];
  }
  if (value === null || Object.keys(value).some((name) => name.startsWith('$'))) return [];
  return Object.entries(value).flatMap(([name, one]) => nearValues(one).map((near) => ({ ...value, [name]: near })));
}

/** Variations of an integer. They keep its sign, because a count, for example, can't be negative. */
const nearInteger = (value: number): number[] => [value + 1, value * 2, value - 1, value + 3].filter((near) => near >= 0 === value >= 0);

function nearText(text: string): string[] {
  const places = [...text.matchAll(/[\p{L}\p{N}]/gu)].map(({ index }) => index);
  const changed = [places.at(-1), places[0], places[Math.floor(places.length / 2)]].flatMap((at) =>
    at === undefined ? [] : [`${text.slice(0, at)}${nextCharacter(text.charAt(at))}${text.slice(at + 1)}`],
  );
  const words = text.split(/(\s+)/);
  return [...changed, text.slice(0, -1), `${text}${text}`, text.slice(1), words.toReversed().join('')];
}

function nextCharacter(character: string): string {
  const ring = ['0123456789', 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'].find((all) => all.includes(character));
  return ring === undefined ? character : ring.charAt((ring.indexOf(character) + 1) % ring.length);
}
