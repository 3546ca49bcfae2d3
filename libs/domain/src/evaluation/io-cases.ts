import type { Evaluator } from '@etude/contracts/task';
import { sameOutput } from './compare.js';
import { crashOutcome, cutExample, type EvaluatorRules, examples, PASSED, publicOf, shown, streams, WRONG } from './evaluator.js';

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
