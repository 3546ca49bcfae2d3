import { Buffer } from 'node:buffer';
import type { Evaluator } from '@etude/contracts/task';
import { sameOutput } from './compare.js';
import { crashOutcome, type EvaluatorRules, PASSED } from './evaluator.js';

const TOLERANCE = 1e-6;

/** Runs a command beside the saved answer. The exit code judges the answer, and so does the output if the task expects one. */
export function command(evaluator: Extract<Evaluator, { kind: 'command' }>): EvaluatorRules {
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
