import type { Evaluator } from '@etude/contracts/task';
import { sameOutput } from './compare.js';
import { cutMiddle } from './evaluator.js';
import { crashOutcome, type EvaluatorRules, examples, PASSED, shown, streams, WRONG } from './evaluator.js';

type IoCases = Extract<Evaluator, { kind: 'io_cases' }>;

const EXAMPLE_CHARS_MAX = 1_000;
const cut = (text: string) => cutMiddle(text, EXAMPLE_CHARS_MAX);

/** A program is given each case's standard input, and its standard output is compared. */
export const IO_CASES: EvaluatorRules<IoCases> = {
  plan: ({ cases }, code) => cases.map(({ stdin }) => ({ kind: 'program', code, stdin })),
  cases: ({ cases }) => cases,
  outcome({ cases, comparison, tolerance }, run, at, code) {
    const isSame = () => run.stdoutCutBytes === 0 && sameOutput(run.stdout, cases[at]!.expectedStdout, comparison, tolerance);
    return crashOutcome(run, code) ?? (isSame() ? PASSED : WRONG);
  },
  showCase({ cases }, at, run) {
    const { stdin, expectedStdout } = cases[at]!;
    return [`Input:\n${shown(stdin)}`, `Expected output:\n${shown(expectedStdout)}`, ...streams(run)];
  },
  expectation({ cases }, parts) {
    const texts = cases
      .filter((given) => given.public)
      .map(({ stdin, expectedStdout }) => `Input:\n${cut(stdin)}\nExpected output:\n${cut(expectedStdout)}`);
    return `A complete program that reads standard input and writes standard output. It is run on ${cases.length} inputs.${examples(texts, parts)}`;
  },
  visible: ({ cases }) => cases.filter((given) => given.public),
  adapt: (_, { entryPoint, code }) => (entryPoint === null ? { code } : null),
  tests: ({ cases, comparison, tolerance }) =>
    cases.map(({ stdin, expectedStdout }) => ({ kind: 'io', stdin, expectedStdout, comparison, tolerance })),
};
