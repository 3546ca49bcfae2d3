import type { Evaluator } from '@etude/contracts/task';
import { definedNames, definesName } from './answer-code.js';
import { cutMiddle } from './evaluator.js';
import { crashOutcome, type EvaluatorRules, PASSED, shown, streams } from './evaluator.js';
import { callable } from './function-cases.js';
import { continueStub, endsWithStub } from './function-stub.js';

type PythonTests = Extract<Evaluator, { kind: 'python_tests' }>;

const TESTS_CHARS_MAX = 12_000;

/** The caller's own test code runs in a process of its own, and calls the answer. */
export const PYTHON_TESTS: EvaluatorRules<PythonTests> = {
  /**
   * An answer that defines the entry point stands on its own below the setup; one that doesn't is the body of the stub that the
   * setup ends with, if it ends with one. The stub itself goes with the answer, so that both texts are Python by themselves.
   */
  plan({ entryPoint, setup, tests }, code) {
    const stub = endsWithStub(setup, entryPoint);
    const ground = stub ? stub.before : setup;
    const isBody = stub !== null && !definesName(code, entryPoint);
    const whole = ground === '' ? code : `\n\n${code}`;
    const answer = isBody ? `${stub.text}${continueStub(stub, code)}` : whole;
    return [{ kind: 'checked', setup: ground, code: answer, entryPoint, tests: callingCheck(tests, entryPoint) }];
  },
  outcome(_, run, _at, code) {
    if (run.exit === 'ok' && run.passed === true) return PASSED;
    if (run.error?.type === 'AssertionError') return { verdict: 'WA', how: 'an assertion of the tests failed' };
    return crashOutcome(run, code) ?? { verdict: 'WA', how: 'the tests did not run to their end' };
  },
  feedback(evaluator, how, run) {
    if (!evaluator.public) return `The hidden tests failed: ${how}`;
    const message = run.error?.message ? [`${run.error.type}: ${shown(run.error.message)}`] : [];
    return [`The tests failed: ${how}`, ...message, ...streams(run)].join('\n');
  },
  expectation({ entryPoint, setup, tests, public: isPublic }, { prompt, block }) {
    const lines = [`Code that defines \`${entryPoint}\` at its top level. Tests call it.`];
    if (setup.trim() !== '') {
      lines.push(
        prompt.includes(setup.trim())
          ? 'The code in the task is already in place before yours.'
          : `This code is already in place before yours:\n${block('setup', setup)}`,
      );
    }
    if (endsWithStub(setup, entryPoint)) lines.push('Repeat the whole function, or answer with its indented body alone.');
    if (isPublic) lines.push(`The tests:\n${block('tests', cutMiddle(tests, TESTS_CHARS_MAX))}`);
    return lines.join('\n');
  },
  visible: ({ setup, tests, public: isPublic }) => [setup, isPublic ? tests : ''],
  adapt: callable,
  tests: ({ setup, tests }) => [{ kind: 'python', setup, tests }],
};

/** HumanEval's tests define `check(candidate)` and leave the call to the harness; uncalled they would pass anything. */
function callingCheck(tests: string, entryPoint: string): string {
  const defined = definedNames(tests).includes('check');
  return defined && !/^check\s*\(/m.test(tests) ? `${tests}\n\ncheck(${entryPoint})\n` : tests;
}
