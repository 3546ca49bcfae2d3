import type { SandboxFile, SandboxRun } from '@etude/contracts/sandbox';
import type { Evaluator } from '@etude/contracts/task';
import { COMMAND } from './command.js';
import { crashOutcome, type EvaluatorRules, PASSED, streams } from './evaluator.js';
import { FUNCTION_CASES } from './function-cases.js';
import { IO_CASES } from './io-cases.js';
import { PYTHON_TESTS } from './python-tests.js';

/** Nothing is judged: a program that runs to its end has passed. */
const NONE: EvaluatorRules<Extract<Evaluator, { kind: 'none' }>> = {
  plan: (_, code) => [{ kind: 'program', code, stdin: '' }],
  outcome: (_, run, _at, code) => crashOutcome(run, code) ?? PASSED,
  praise: (_, run) => ['The code ran to its end.', ...streams(run)].join('\n'),
  expectation: () => 'A complete program. What it prints is the final answer to the task.',
  visible: () => '',
  adapt: (_, { entryPoint }) => ({ binds: entryPoint === null ? 'stdin' : 'arguments' }),
};

/** Every kind of evaluator. */
const EVALUATORS: { readonly [Kind in Evaluator['kind']]: EvaluatorRules<Extract<Evaluator, { kind: Kind }>> } = {
  io_cases: IO_CASES,
  function_cases: FUNCTION_CASES,
  python_tests: PYTHON_TESTS,
  command: COMMAND,
  none: NONE,
};

/** The rules of an evaluator's kind; they take this very evaluator. */
export function rulesOf({ kind }: Evaluator): EvaluatorRules<Evaluator> {
  return EVALUATORS[kind];
}

/** What the sandbox has to run to judge this code, one run per case. */
export function planRuns(evaluator: Evaluator, code: string): SandboxRun[] {
  return rulesOf(evaluator).plan(evaluator, code);
}

/** Files that the runs need beside the task's own. */
export function planFiles(evaluator: Evaluator, code: string): SandboxFile[] {
  return rulesOf(evaluator).files?.(evaluator, code) ?? [];
}

/**
 * Whether the sandbox may leave out the cases after one that crashed or ran out of time or memory. Such an answer is refused
 * whatever they say, and a thousand cases that each time out would take hours.
 */
export function stopOnFailure(evaluator: Evaluator): boolean {
  return rulesOf(evaluator).cases !== undefined;
}
