import type { Evaluator } from '@etude/contracts/task';
import { EtudeError } from '@etude/contracts/errors';
import { crashOutcome, type EvaluatorRules, type NamedKind, PASSED, streams } from './evaluator.js';
import { functionCases } from './function-cases.js';
import { acceptedOutputs, ioCases, kattisOutput } from './io-cases.js';
import { pythonTests } from './python-tests.js';
import { Buffer } from 'node:buffer';
import { sameOutput } from './compare.js';

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

const TOLERANCE = 1e-6;

/** Runs a command beside the saved answer. The exit code judges the answer, and so does the output if the task expects one. */
function command(evaluator: Extract<Evaluator, { kind: 'command' }>): EvaluatorRules {
  const { command: line, answerPath, expectedExitCode, expectedStdout, comparison } = evaluator;
  return {
    plan: () => [{ kind: 'command', command: line, stdin: '' }],
    files: (code) => [{ path: answerPath, contentBase64: Buffer.from(`${code}\n`, 'utf8').toString('base64') }],
    outcome(run) {
      if (run.exit === 'signal') return { verdict: 'RE', how: `the command was killed by signal ${run.signal}` };
      const { exitCode } = run;
      // A null exit code means that the command never exited; it must not count as 0.
      if (exitCode === null) return crashOutcome(run, '') ?? { verdict: 'RE', how: 'the command did not exit' };
      if (exitCode !== expectedExitCode)
        return { verdict: exitCode === 0 ? 'WA' : 'RE', how: `the command exited with ${exitCode}, not ${expectedExitCode}` };
      const isSame = expectedStdout === undefined || sameOutput(run.stdout, expectedStdout, comparison, TOLERANCE);
      return isSame ? PASSED : { verdict: 'WA', how: "the command's output is not the expected one" };
    },
    expectation: ({ block }) =>
      `Your code is saved as \`${answerPath}\`. Then this command is run and must exit with ${expectedExitCode}:\n${block('command', line)}`,
    visible: [line, answerPath, expectedExitCode],
    adapt: ({ entryPoint, code }) => (entryPoint === null ? { code } : 'needs_arguments'),
  };
}
