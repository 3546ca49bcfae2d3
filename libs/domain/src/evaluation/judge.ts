import { EtudeError } from '@etude/contracts/errors';
import { RETRYABLE_EXITS, type ExitReason, type RunResult, type SandboxRun } from '@etude/contracts/sandbox';
import type { Evaluator, Verdict } from '@etude/contracts/task';
import { type CaseOutcome, type EvaluatorRules, streams } from './evaluator.js';
import { rulesOf } from './evaluators.js';

export interface Judgement {
  readonly verdict: Verdict;
  /** One line for people and the model, without data of a hidden case. */
  readonly reason: string;
  readonly casesPassed: number;
  readonly casesTotal: number;
  /** Feedback for the model. It shows public cases in full. Of hidden cases it tells only how they failed: their data must reach no prompt. */
  readonly feedback: string;
  /** Output or value of the first failing run, or of the first run if none failed. Callers get it, but no prompt may show it. */
  readonly output: string;
}

export function ranToTheEnd(results: readonly RunResult[]): boolean {
  return results.length > 0 && !results.some((run) => RETRYABLE_EXITS.has(run.exit) || run.exit === 'cancelled');
}

/**
 * Judges the results of the planned runs. The first failing case decides the verdict.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE (retryable) if a sandbox was lost or results are missing; CANCELLED
 */
export function judge(evaluator: Evaluator, plannedRuns: readonly SandboxRun[], results: readonly RunResult[]): Judgement {
  const rules = rulesOf(evaluator);
  refuseUnfinished(plannedRuns.length, results);
  const outcomes = plannedRuns.map((planned, at) => outcomeOf(rules, planned, at, results[at]));
  const decisive = outcomes.findIndex(({ verdict }) => verdict !== 'AC');
  const casesPassed = outcomes.filter(({ verdict }) => verdict === 'AC').length;
  const run = results[Math.max(decisive, 0)];
  return {
    verdict: decisive < 0 ? 'AC' : outcomes[decisive]!.verdict!,
    reason: reasonOf(rules, outcomes, decisive),
    // Without an evaluator there are no cases to count.
    ...(evaluator.kind === 'none' ? { casesPassed: 0, casesTotal: 0 } : { casesPassed, casesTotal: plannedRuns.length }),
    feedback: feedbackOf(rules, outcomes, results, casesPassed),
    output: run?.value === undefined ? (run?.stdout ?? '') : JSON.stringify(run.value),
  };
}

/** Checks that all runs ended by themselves. @throws EtudeError SANDBOX_UNAVAILABLE (retryable); CANCELLED */
export function refuseUnfinished(planned: number, results: readonly RunResult[]): void {
  const lost = results.find((run) => RETRYABLE_EXITS.has(run.exit));
  if (lost) throw new EtudeError('SANDBOX_UNAVAILABLE', `The sandbox was lost while the code ran (${lost.exit}). Run the execution again.`);
  if (results.some((run) => run.exit === 'cancelled'))
    throw new EtudeError('CANCELLED', 'The execution was cancelled before the code finished.');
  const isComplete = results.length >= planned || (results.length > 0 && results.at(-1)?.exit !== 'ok');
  if (!isComplete)
    throw new EtudeError('SANDBOX_UNAVAILABLE', `The sandbox returned ${results.length} of ${planned} results. Run the execution again.`);
}

export function judgeWithoutCode(evaluator: Evaluator): Judgement {
  const reason = 'the answer held no code';
  const feedback = 'Your answer held no code. Answer with one fenced Python block that holds all of it.';
  return { verdict: 'RE', reason, casesPassed: 0, casesTotal: rulesOf(evaluator).cases?.length ?? 1, feedback, output: '' };
}

const SHOWN_CASES_MAX = 3;
export const LIMIT_VERDICTS: Partial<Record<ExitReason, readonly [Verdict, string]>> = {
  wall: ['TLE', 'ran out of wall time'],
  cpu: ['TLE', 'ran out of CPU time'],
  no_output: ['TLE', 'printed nothing for too long'],
  oom: ['MLE', 'ran out of memory'],
  oomkilled: ['MLE', 'ran out of memory'],
  output: ['RE', 'printed more than is allowed'],
  disk: ['RE', 'wrote more than is allowed'],
  pids: ['RE', 'started more processes than are allowed'],
  kernel_lost: ['RE', 'crashed its sandbox, or its files did not fit into the sandbox'],
};

function outcomeOf(rules: EvaluatorRules, planned: SandboxRun, at: number, run: RunResult | undefined): CaseOutcome {
  if (!run) return { verdict: null, how: 'not run' };
  const [verdict, how] = LIMIT_VERDICTS[run.exit] ?? [];
  if (verdict && how) return { verdict, how };
  return rules.outcome(run, at, 'code' in planned ? planned.code : '');
}

function reasonOf({ cases }: EvaluatorRules, outcomes: readonly CaseOutcome[], decisive: number): string {
  if (decisive < 0) return outcomes.length > 1 ? `all ${outcomes.length} cases passed` : outcomes[0]!.how;
  const { how } = outcomes[decisive]!;
  return cases ? `${cases[decisive]!.public ? '' : 'hidden '}case ${decisive + 1} of ${outcomes.length}: ${how}` : how;
}

function feedbackOf(rules: EvaluatorRules, outcomes: readonly CaseOutcome[], results: readonly RunResult[], passed: number): string {
  const run = results[0]!;
  if (passed === outcomes.length) return rules.praise?.(run) ?? (passed > 1 ? `All ${passed} cases passed.` : 'Passed.');
  if (rules.cases) return casesFeedback(rules, outcomes, results, passed);
  const { how } = outcomes[0]!;
  const sentence = `${how[0]?.toUpperCase() ?? ''}${how.slice(1)}.`;
  return rules.feedback?.(sentence, run) ?? [sentence, ...streams(run)].join('\n');
}

function casesFeedback(rules: EvaluatorRules, outcomes: readonly CaseOutcome[], results: readonly RunResult[], passed: number): string {
  const { cases = [] } = rules;
  const failed = outcomes.map((outcome, at) => ({ ...outcome, at })).filter(({ verdict }) => verdict !== 'AC' && verdict !== null);
  const told = failed.filter(({ at }) => cases[at]?.public).slice(0, SHOWN_CASES_MAX);
  const hidden = failed.filter(({ at }) => !cases[at]?.public);
  const lines = [`${passed} of ${outcomes.length} cases passed.`];
  for (const { at, how } of told) lines.push(`Case ${at + 1}: ${how}`, ...(rules.showCase?.(at, results[at]!) ?? []));
  if (hidden.length > 0) lines.push(`Hidden cases failed: ${hidden.length}. The first of them: ${hidden[0]!.how}.`);
  if (outcomes.some(({ verdict }) => verdict === null)) lines.push('Cases after the unfinished case were not run.');
  return lines.join('\n');
}
