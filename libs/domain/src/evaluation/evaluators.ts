import type { Evaluator } from '@etude/contracts/task';
import { EtudeError } from '@etude/contracts/errors';
import { command } from './command.js';
import { crashOutcome, type EvaluatorRules, type NamedKind, streams } from './evaluator.js';
import { functionCases } from './function-cases.js';
import { acceptedOutputs, ioCases } from './io-cases.js';
import { kattisOutput } from './kattis-output.js';
import { pythonTests } from './python-tests.js';

/** Judges nothing: a program that runs to its end gives the answer. */
const NONE: EvaluatorRules = {
  plan: (code) => [{ kind: 'program', code, stdin: '' }],
  outcome: (run, _at, code) => crashOutcome(run, code) ?? { verdict: 'AC', how: 'ran to its end' },
  praise: (run) => ['The code ran to its end.', ...streams(run)].join('\n'),
  expectation: () => 'A complete program. What it prints is the final answer to the task.',
  visible: '',
  adapt: ({ entryPoint }) => (entryPoint === null ? null : 'needs_arguments'),
};

/** Evaluators that callers choose by name (`kind: "named"`). */
const NAMED: Readonly<Record<string, NamedKind>> = { accepted_outputs: acceptedOutputs, kattis_output: kattisOutput };

const EVALUATORS: { readonly [Kind in Evaluator['kind']]: (evaluator: Extract<Evaluator, { kind: Kind }>) => EvaluatorRules } = {
  io_cases: ioCases,
  function_cases: functionCases,
  python_tests: pythonTests,
  command,
  none: () => NONE,
  named: ({ name, spec }) => {
    const rules = namedKindOf(name).rules(spec);
    return { ...rules, visible: [name, rules.visible] };
  },
};

export function rulesOf(evaluator: Evaluator): EvaluatorRules {
  return (EVALUATORS[evaluator.kind] as (given: Evaluator) => EvaluatorRules)(evaluator);
}

function namedKindOf(name: string): NamedKind {
  const kind = NAMED[name];
  if (kind === undefined) throw new EtudeError('FAILED_PRECONDITION', `there is no evaluator ${JSON.stringify(name)} in this release`);
  return kind;
}

/** Problems in the fields of a named evaluator, by path. Empty for other kinds, whose fields the contract checks. */
export function evaluatorProblems(
  evaluator: Evaluator,
): ReadonlyArray<{ readonly path: readonly PropertyKey[]; readonly message: string }> {
  if (evaluator.kind !== 'named') return [];
  const kind = NAMED[evaluator.name];
  if (kind === undefined) return [{ path: ['name'], message: `must be one of ${Object.keys(NAMED).join(', ')}` }];
  const { error } = kind.spec.safeParse(evaluator.spec);
  return (error?.issues ?? []).map(({ path, message }) => ({ path: ['spec', ...path], message }));
}
