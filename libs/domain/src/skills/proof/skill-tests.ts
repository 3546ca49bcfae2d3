import type { SkillTest } from '@etude/contracts/memory';
import type { Evaluator } from '@etude/contracts/task';
import { rulesOf } from '../../evaluation/evaluators.js';
import type { RunResult } from '@etude/contracts/sandbox';

/** A skill's tests from an evaluator's cases. Empty where the evaluator judges something other than the code's answers. */
export function testsFrom(evaluator: Evaluator): SkillTest[] {
  return rulesOf(evaluator).tests ?? [];
}

/** The inverse of `testsFrom`: an evaluator that judges code by this test. */
export function evaluatorOf(test: SkillTest, entryPoint: string | null): Evaluator {
  if (test.kind === 'io') {
    const { stdin, expectedStdout, comparison, tolerance } = test;
    return { kind: 'io_cases', cases: [{ stdin, expectedStdout, public: false }], comparison, tolerance };
  }
  if (entryPoint === null) throw new TypeError(`a test of kind "${test.kind}" needs an entry point`);
  if (test.kind === 'python') return { kind: 'python_tests', entryPoint, tests: test.tests, setup: test.setup, public: false };
  const { args, kwargs, expected, tolerance } = test;
  return { kind: 'function_cases', entryPoint, cases: [{ args, kwargs, expected, public: false }], tolerance };
}

/**
 * Tests that call a function by the name `called`, for code that has it as `name`. The tests define the alias in their own process. If the
 * code could see that alias, it would know whose tests it runs.
 */
export function testsByName(tests: readonly SkillTest[], called: string | null, name: string | null): readonly SkillTest[] {
  if (called === name || called === null || name === null) return tests;
  return tests.map((test) => (test.kind === 'python' ? { ...test, tests: withName(test.tests, `${called} = ${name}\n`) } : test));
}

/** Inserts a line behind `from __future__` imports, which Python requires first. */
function withName(tests: string, line: string): string {
  const [future = ''] = /^(?:(?:from __future__ import .*|#.*|[ \t]*)\n)*/.exec(tests) ?? [];
  return `${future}${line}${tests.slice(future.length)}`;
}

/** The most characters that are shown of one value. */
const VALUE_MAX = 80;

/**
 * The call of a failed test with the expected and the returned value, to follow its verdict: `; f("a", n=2) gave "x", not "y"`. Only for
 * readers who may see the test. Empty for a Python test.
 */
export function failedCall(
  { entryPoint }: { readonly entryPoint: string | null },
  test: SkillTest | undefined,
  result: RunResult | undefined,
): string {
  if (test === undefined || test.kind === 'python') return '';
  const isProgram = test.kind === 'io';
  const called = isProgram ? `with the input ${shown(test.stdin)} it` : `${entryPoint}(${argumentsOf(test)})`;
  const wanted = shown(isProgram ? test.expectedStdout : test.expected);
  const got = isProgram ? result?.stdout : result?.value;
  const isAnswer = result?.exit === 'ok' && result.error === undefined && got !== undefined;
  if (isAnswer) return `; ${called} gave ${shown(got)}, not ${wanted}`;
  const why = result?.error === undefined ? '' : `: ${oneLine(result.error.message, VALUE_MAX)}`;
  return `; ${called}, where ${wanted} is expected${why}`;
}

function argumentsOf({ args, kwargs }: Extract<SkillTest, { kind: 'call' }>): string {
  const named = Object.entries(kwargs).map(([name, value]) => `${name}=${shown(value)}`);
  return oneLine([...args.map(shown), ...named].join(', '), 2 * VALUE_MAX);
}

const shown = (value: unknown) => oneLine(JSON.stringify(value), VALUE_MAX);

/** The text without control characters and line breaks, since JSON leaves some unescaped. It is cut to `max` characters. */
function oneLine(text: string, max: number): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ');
  return line.length <= max ? line : `${line.slice(0, max - 1)}…`;
}
