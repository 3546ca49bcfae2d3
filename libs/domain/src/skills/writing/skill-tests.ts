import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { Evaluator } from '@etude/contracts/task';

/** A skill's tests from an evaluator's cases. Empty where the evaluator judges something other than the code's answers. */
export function testsFrom(evaluator: Evaluator): SkillTest[] {
  switch (evaluator.kind) {
    case 'io_cases':
      return evaluator.cases.map(({ stdin, expectedStdout }) => ({
        kind: 'io',
        stdin,
        expectedStdout,
        comparison: evaluator.comparison,
        tolerance: evaluator.tolerance,
      }));
    case 'function_cases':
      return evaluator.cases.map(({ args, kwargs, expected }) => ({
        kind: 'call',
        args,
        kwargs,
        expected,
        tolerance: evaluator.tolerance,
      }));
    case 'python_tests':
      return [{ kind: 'python', setup: evaluator.setup, tests: evaluator.tests }];
    default:
      return [];
  }
}

/** The way back: evaluators that judge code by a skill's tests, one for each way of comparing, in the order of the tests. */
export function evaluatorsOf({ tests, entryPoint }: Pick<Skill, 'tests' | 'entryPoint'>): Evaluator[] {
  const evaluators = new Map<string, Evaluator>();
  tests.forEach((test, index) => {
    const key =
      test.kind === 'io' ? `io ${test.comparison} ${test.tolerance}` : test.kind === 'call' ? `call ${test.tolerance}` : `python ${index}`;
    const known = evaluators.get(key);
    if (known) addCase(known, test);
    else evaluators.set(key, evaluatorOf(test, entryPoint));
  });
  return [...evaluators.values()];
}

function evaluatorOf(test: SkillTest, entryPoint: string | null): Evaluator {
  if (test.kind === 'io') return addCase({ kind: 'io_cases', cases: [], comparison: test.comparison, tolerance: test.tolerance }, test);
  if (entryPoint === null) throw new TypeError(`a test of kind "${test.kind}" needs an entry point`);
  if (test.kind === 'call') return addCase({ kind: 'function_cases', entryPoint, cases: [], tolerance: test.tolerance }, test);
  return { kind: 'python_tests', entryPoint, tests: test.tests, setup: test.setup, public: false };
}

function addCase(evaluator: Evaluator, test: SkillTest): Evaluator {
  if (evaluator.kind === 'io_cases' && test.kind === 'io') {
    evaluator.cases.push({ stdin: test.stdin, expectedStdout: test.expectedStdout, public: false });
  }
  if (evaluator.kind === 'function_cases' && test.kind === 'call') {
    evaluator.cases.push({ args: test.args, kwargs: test.kwargs, expected: test.expected, public: false });
  }
  return evaluator;
}
