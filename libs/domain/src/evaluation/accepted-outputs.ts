import { z } from 'zod';
import { sameOutput } from './compare.js';
import { crashOutcome, namedKind, PASSED, WRONG } from './evaluator.js';
import { ioCases } from './io-cases.js';

const Case = z.strictObject({ stdin: z.string(), outputs: z.array(z.string()).min(1).max(100), public: z.boolean().default(false) });

/** A program may answer each case with any of several outputs. The cases can't become a skill's tests, which have one output each. */
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
