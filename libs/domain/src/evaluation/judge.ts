import { EtudeError } from '@etude/contracts/errors';
import { RETRYABLE_EXITS, type ExitReason, type RunResult, type SandboxRun } from '@etude/contracts/sandbox';
import type { Evaluator, Verdict } from '@etude/contracts/task';
import { sameOutput, sameValue } from './compare.js';
import { crashOf } from './crash.js';
import { feedbackOf, type CaseOutcome } from './feedback.js';

export interface Judgement {
  readonly verdict: Verdict;
  /** One line for people and the model; never holds anything of a hidden case. */
  readonly reason: string;
  readonly casesPassed: number;
  readonly casesTotal: number;
  /** What the model sees: public cases in full, hidden ones only by how they failed. */
  readonly feedback: string;
  /** What the decisive run printed or returned; for callers, not for prompts. */
  readonly output: string;
}

/** Whether these results can be judged: the infrastructure held, and nobody stopped the code. */
export function ranToTheEnd(results: readonly RunResult[]): boolean {
  return results.length > 0 && !results.some((run) => RETRYABLE_EXITS.has(run.exit) || run.exit === 'cancelled');
}

/** Outcomes that are nobody's answer: the infrastructure failed or somebody stopped the run. */
function refuseUnfinished(results: readonly RunResult[]): void {
  const lost = results.find((run) => RETRYABLE_EXITS.has(run.exit));
  if (lost) throw new EtudeError('SANDBOX_UNAVAILABLE', `The sandbox was lost while the code ran (${lost.exit}); run the execution again.`);
  if (results.some((run) => run.exit === 'cancelled'))
    throw new EtudeError('CANCELLED', 'The execution was cancelled before the code finished.');
}

/**
 * Judges what the planned runs gave. The first failing case gives the verdict.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE (retryable) where the infrastructure failed or results are missing, CANCELLED
 */
export function judge(evaluator: Evaluator, plannedRuns: readonly SandboxRun[], results: readonly RunResult[]): Judgement {
  refuseUnfinished(results);
  const stopped = results.at(-1)?.exit !== 'ok' && results.length > 0;
  if (results.length < plannedRuns.length && !stopped) {
    throw new EtudeError(
      'SANDBOX_UNAVAILABLE',
      `The sandbox answered ${results.length} of ${plannedRuns.length} runs; run the execution again.`,
    );
  }
  const outcomes = plannedRuns.map((planned, at) => outcomeOf(evaluator, planned, at, results[at]));
  const decisive = outcomes.findIndex(({ verdict }) => verdict !== 'AC');
  const passed = outcomes.filter(({ verdict }) => verdict === 'AC').length;
  const verdict = decisive < 0 ? 'AC' : outcomes[decisive]!.verdict!;
  return {
    verdict,
    reason: reasonOf(evaluator, outcomes, decisive),
    casesPassed: passed,
    casesTotal: plannedRuns.length,
    feedback: feedbackOf(evaluator, outcomes, results, passed),
    output: outputOf(results[Math.max(decisive, 0)]),
  };
}

/** Where the answer held nothing to run: an observation like any other. */
export function judgeWithoutCode(evaluator: Evaluator): Judgement {
  const reason = 'the answer held no code';
  const feedback = 'Your answer held no code. Answer with one fenced Python block that holds all of it.';
  return { verdict: 'RE', reason, casesPassed: 0, casesTotal: casesOf(evaluator), feedback, output: '' };
}

function casesOf(evaluator: Evaluator): number {
  return evaluator.kind === 'io_cases' || evaluator.kind === 'function_cases' ? evaluator.cases.length : 1;
}

const EXIT_VERDICTS: Partial<Record<ExitReason, [Verdict, string]>> = {
  wall: ['TLE', 'ran out of wall time'],
  cpu: ['TLE', 'ran out of CPU time'],
  no_output: ['TLE', 'printed nothing for too long'],
  oom: ['MLE', 'ran out of memory'],
  oomkilled: ['MLE', 'ran out of memory'],
  output: ['RE', 'printed more than is allowed'],
  disk: ['RE', 'wrote more than is allowed'],
  pids: ['RE', 'started more processes than are allowed'],
  kernel_lost: ['RE', 'took its sandbox down, or its files did not fit into it'],
};

function outcomeOf(evaluator: Evaluator, planned: SandboxRun, at: number, run: RunResult | undefined): CaseOutcome {
  if (!run) return { verdict: null, how: 'not run' };
  const limit = EXIT_VERDICTS[run.exit];
  if (limit) return { verdict: limit[0], how: limit[1] };
  if (evaluator.kind === 'command') return commandOutcome(evaluator, run);
  if (planned.kind === 'checked') return checkedOutcome(run, planned.code);
  if (run.exit !== 'ok' || run.error) return crashOutcome(run, 'code' in planned ? planned.code : '');
  return sameAsExpected(evaluator, at, run) ? { verdict: 'AC', how: 'passed' } : { verdict: 'WA', how: 'wrong answer' };
}

function crashOutcome(run: RunResult, code: string): CaseOutcome {
  const crash = crashOf(run, code);
  if (crash.type === 'MemoryError') return { verdict: 'MLE', how: 'ran out of memory' };
  return { verdict: 'RE', how: crash.summary };
}

function checkedOutcome(run: RunResult, code: string): CaseOutcome {
  if (run.exit === 'ok' && run.passed === true) return { verdict: 'AC', how: 'passed' };
  if (run.error?.type === 'AssertionError') return { verdict: 'WA', how: 'an assertion of the tests failed' };
  if (run.error || run.exit !== 'ok') return crashOutcome(run, code);
  return { verdict: 'WA', how: 'the tests did not run to their end' };
}

function commandOutcome(evaluator: Extract<Evaluator, { kind: 'command' }>, run: RunResult): CaseOutcome {
  if (run.exit === 'signal') return { verdict: 'RE', how: `the command was killed by signal ${run.signal}` };
  const code = run.exitCode;
  if (code === null) return crashOutcome(run, ''); // it never exited: that is no 0
  if (code !== evaluator.expectedExitCode) {
    return { verdict: code === 0 ? 'WA' : 'RE', how: `the command exited with ${code}, not ${evaluator.expectedExitCode}` };
  }
  const same = evaluator.expectedStdout === undefined || sameOutput(run.stdout, evaluator.expectedStdout, evaluator.comparison, 1e-6);
  return same ? { verdict: 'AC', how: 'passed' } : { verdict: 'WA', how: "the command's output is not the expected one" };
}

function sameAsExpected(evaluator: Evaluator, at: number, run: RunResult): boolean {
  if (evaluator.kind === 'io_cases') {
    return (
      sameOutput(run.stdout, evaluator.cases[at]!.expectedStdout, evaluator.comparison, evaluator.tolerance) && run.stdoutCutBytes === 0
    );
  }
  if (evaluator.kind === 'function_cases') return sameValue(run.value, evaluator.cases[at]!.expected, evaluator.tolerance);
  return true;
}

function reasonOf(evaluator: Evaluator, outcomes: readonly CaseOutcome[], decisive: number): string {
  if (decisive < 0) return outcomes.length > 1 ? `all ${outcomes.length} cases passed` : 'passed';
  const { how } = outcomes[decisive]!;
  if (evaluator.kind !== 'io_cases' && evaluator.kind !== 'function_cases') return how;
  const hidden = evaluator.cases[decisive]!.public ? '' : 'hidden ';
  return `${hidden}case ${decisive + 1} of ${outcomes.length}: ${how}`;
}

function outputOf(run: RunResult | undefined): string {
  if (!run) return '';
  return run.value === undefined ? run.stdout : JSON.stringify(run.value);
}
