import type { Evaluator } from '@etude/contracts/task';
import { command } from './command.js';
import { crashOutcome, type EvaluatorRules, PASSED, streams } from './evaluator.js';
import { functionCases } from './function-cases.js';
import { ioCases } from './io-cases.js';
import { pythonTests } from './python-tests.js';

/** Nothing is judged: a program that runs to its end has passed. */
const NONE: EvaluatorRules = {
  plan: (code) => [{ kind: 'program', code, stdin: '' }],
  outcome: (run, _at, code) => crashOutcome(run, code) ?? PASSED,
  praise: (run) => ['The code ran to its end.', ...streams(run)].join('\n'),
  expectation: () => 'A complete program. What it prints is the final answer to the task.',
  visible: '',
  adapt: ({ entryPoint }) => (entryPoint === null ? null : 'needs_arguments'),
};

/** Every kind of evaluator. */
const EVALUATORS: { readonly [Kind in Evaluator['kind']]: (evaluator: Extract<Evaluator, { kind: Kind }>) => EvaluatorRules } = {
  io_cases: ioCases,
  function_cases: functionCases,
  python_tests: pythonTests,
  command,
  none: () => NONE,
};

export function rulesOf(evaluator: Evaluator): EvaluatorRules {
  return (EVALUATORS[evaluator.kind] as (given: Evaluator) => EvaluatorRules)(evaluator);
}
