import type { Evaluator } from '@etude/contracts/task';
import { z } from 'zod';
import { sameOutput } from './compare.js';
import {
  crashOutcome,
  cutExample,
  type EvaluatorRules,
  examples,
  namedKind,
  PASSED,
  publicOf,
  shown,
  streams,
  WRONG,
} from './evaluator.js';

/** Gives a program each case's standard input and compares its standard output. */
export const ioCases = ({ cases, comparison, tolerance }: Extract<Evaluator, { kind: 'io_cases' }>): EvaluatorRules => ({
  plan: (code) => cases.map(({ stdin }) => ({ kind: 'program', code, stdin })),
  cases,
  outcome(run, at, code) {
    const isSame = () => run.stdoutCutBytes === 0 && sameOutput(run.stdout, cases[at]!.expectedStdout, comparison, tolerance);
    return crashOutcome(run, code) ?? (isSame() ? PASSED : WRONG);
  },
  showCase(at, run) {
    const { stdin, expectedStdout } = cases[at]!;
    return [`Input:\n${shown(stdin)}`, `Expected output:\n${shown(expectedStdout)}`, ...streams(run)];
  },
  expectation(parts) {
    const shownCases = examples(
      cases,
      parts,
      ({ stdin, expectedStdout }) => `Input:\n${cutExample(stdin)}\nExpected output:\n${cutExample(expectedStdout)}`,
    );
    return `A complete program that reads standard input and writes standard output. It is run on ${cases.length} inputs.${shownCases}`;
  },
  visible: publicOf(cases),
  adapt: ({ entryPoint, code }) => (entryPoint === null ? { code } : null),
  tests: cases.map(({ stdin, expectedStdout }) => ({ kind: 'io', stdin, expectedStdout, comparison, tolerance })),
});

const Case = z.strictObject({ stdin: z.string(), outputs: z.array(z.string()).min(1).max(100), public: z.boolean().default(false) });

/** Accepts any of several outputs for each case. The cases can't become a skill's tests, since a test has one output. */
export const acceptedOutputs = namedKind(z.strictObject({ cases: z.array(Case).min(1).max(1_000) }), ({ cases }) => {
  const first = cases.map(({ outputs, ...given }) => ({ ...given, expectedStdout: outputs[0]! }));
  const { tests: _tests, ...rules } = ioCases({ kind: 'io_cases', cases: first, comparison: 'whitespace', tolerance: 0 });
  return {
    ...rules,
    outcome(run, at, code) {
      const isAccepted = () =>
        run.stdoutCutBytes === 0 && cases[at]!.outputs.some((output) => sameOutput(run.stdout, output, 'whitespace', 0));
      return crashOutcome(run, code) ?? (isAccepted() ? PASSED : WRONG);
    },
  };
});
