import { EtudeError } from '@etude/contracts/errors';
import { RETRYABLE_EXITS, type ExitReason, type RunResult, type SandboxRun } from '@etude/contracts/sandbox';
import type { Evaluator, Verdict } from '@etude/contracts/task';
import { type CaseOutcome, streams } from './evaluator.js';
import { rulesOf } from './evaluators.js';

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
  return { verdict: 'RE', reason, casesPassed: 0, casesTotal: rulesOf(evaluator).cases?.(evaluator).length ?? 1, feedback, output: '' };
}

const SHOWN_CASES_MAX = 3;
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
  return rulesOf(evaluator).outcome(evaluator, run, at, 'code' in planned ? planned.code : '');
}

function reasonOf(evaluator: Evaluator, outcomes: readonly CaseOutcome[], decisive: number): string {
  if (decisive < 0) return outcomes.length > 1 ? `all ${outcomes.length} cases passed` : 'passed';
  const { how } = outcomes[decisive]!;
  const cases = rulesOf(evaluator).cases?.(evaluator);
  if (cases === undefined) return how;
  return `${cases[decisive]!.public ? '' : 'hidden '}case ${decisive + 1} of ${outcomes.length}: ${how}`;
}

/**
 * What the model is told after an attempt. Public cases come with input, expected and actual output. A hidden case shows only that it
 * failed and how: its input and output, and messages made from them, must reach no prompt.
 */
function feedbackOf(evaluator: Evaluator, outcomes: readonly CaseOutcome[], results: readonly RunResult[], passed: number): string {
  const rules = rulesOf(evaluator);
  const run = results[0]!;
  if (passed === outcomes.length) return rules.praise?.(evaluator, run) ?? (passed > 1 ? `All ${passed} cases passed.` : 'Passed.');
  if (rules.cases !== undefined) return casesFeedback(evaluator, outcomes, results, passed);
  const { how } = outcomes[0]!;
  const sentence = `${how[0]?.toUpperCase() ?? ''}${how.slice(1)}.`;
  return rules.feedback?.(evaluator, sentence, run) ?? [sentence, ...streams(run)].join('\n');
}

function casesFeedback(evaluator: Evaluator, outcomes: readonly CaseOutcome[], results: readonly RunResult[], passed: number): string {
  const rules = rulesOf(evaluator);
  const cases = rules.cases?.(evaluator) ?? [];
  const failed = outcomes.map((outcome, at) => ({ ...outcome, at })).filter(({ verdict }) => verdict !== 'AC' && verdict !== null);
  const told = failed.filter(({ at }) => cases[at]?.public).slice(0, SHOWN_CASES_MAX);
  const hidden = failed.filter(({ at }) => !cases[at]?.public);
  const lines = [`${passed} of ${outcomes.length} cases passed.`];
  for (const { at, how } of told) lines.push(`Case ${at + 1}: ${how}`, ...(rules.showCase?.(evaluator, at, results[at]!) ?? []));
  if (hidden.length > 0) lines.push(`Hidden cases failed: ${hidden.length}. The first of them: ${hidden[0]!.how}.`);
  if (outcomes.some(({ verdict }) => verdict === null)) lines.push('The cases after the one that did not finish were not run.');
  return lines.join('\n');
}

function outputOf(run: RunResult | undefined): string {
  if (!run) return '';
  return run.value === undefined ? run.stdout : JSON.stringify(run.value);
}
