import type { RunResult } from '@etude/contracts/sandbox';
import type { Evaluator, Verdict } from '@etude/contracts/task';
import { crashOf } from './crash.js';
import { cutMiddle } from './cut-middle.js';
import { pythonCall, pythonLiteral } from './python-literal.js';

/** How one case went. `null`: it was not run because an earlier one crashed. */
export interface CaseOutcome {
  readonly verdict: Verdict | null;
  readonly how: string;
}

const SHOWN_CASES_MAX = 3;
const SHOWN_CHARS_MAX = 1_500;
const shown = (text: string) => cutMiddle(text, SHOWN_CHARS_MAX);

/**
 * What the model is told after an attempt. Public cases come with input, expected and actual output; of a hidden case only that
 * it failed and how, since its input and output, and messages made from them, must reach no prompt.
 */
export function feedbackOf(evaluator: Evaluator, outcomes: readonly CaseOutcome[], results: readonly RunResult[], passed: number): string {
  if (passed === outcomes.length) return allPassed(evaluator, outcomes.length, results);
  if (evaluator.kind === 'io_cases' || evaluator.kind === 'function_cases') return casesFeedback(evaluator, outcomes, results, passed);
  const run = results[0]!;
  const how = sentence(outcomes[0]!.how);
  if (evaluator.kind === 'python_tests') return testsFeedback(evaluator, how, run);
  return [how, ...streams(run)].join('\n');
}

function allPassed(evaluator: Evaluator, count: number, results: readonly RunResult[]): string {
  if (evaluator.kind === 'none') return ['The code ran to its end.', ...streams(results[0]!)].join('\n');
  return count > 1 ? `All ${count} cases passed.` : 'Passed.';
}

type WithCases = Extract<Evaluator, { kind: 'io_cases' | 'function_cases' }>;

function casesFeedback(evaluator: WithCases, outcomes: readonly CaseOutcome[], results: readonly RunResult[], passed: number): string {
  const failed = outcomes.map((outcome, at) => ({ ...outcome, at })).filter(({ verdict }) => verdict !== 'AC' && verdict !== null);
  const told = failed.filter(({ at }) => evaluator.cases[at]!.public).slice(0, SHOWN_CASES_MAX);
  const hidden = failed.filter(({ at }) => !evaluator.cases[at]!.public);
  const lines = [`${passed} of ${outcomes.length} cases passed.`];
  for (const { at, how } of told) lines.push(publicCase(evaluator, at, how, results[at]!));
  if (hidden.length > 0) lines.push(`Hidden cases failed: ${hidden.length}. The first of them: ${hidden[0]!.how}.`);
  if (outcomes.some(({ verdict }) => verdict === null)) lines.push('The cases after the one that did not finish were not run.');
  return lines.join('\n');
}

function publicCase(evaluator: WithCases, at: number, how: string, run: RunResult): string {
  const lines = [`Case ${at + 1}: ${how}`];
  if (evaluator.kind === 'io_cases') {
    const { stdin, expectedStdout } = evaluator.cases[at]!;
    lines.push(`Input:\n${shown(stdin)}`, `Expected output:\n${shown(expectedStdout)}`, ...streams(run));
  } else {
    const { args, kwargs, expected } = evaluator.cases[at]!;
    lines.push(`Call: ${shown(pythonCall(evaluator.entryPoint, args, kwargs))}`, `Expected: ${shown(pythonLiteral(expected))}`);
    if (run.value !== undefined) lines.push(`Got: ${shown(pythonLiteral(run.value))}`);
    lines.push(...traceback(run));
  }
  return lines.join('\n');
}

function testsFeedback(evaluator: Extract<Evaluator, { kind: 'python_tests' }>, how: string, run: RunResult): string {
  if (!evaluator.public) return `The hidden tests failed: ${how}`;
  const message = run.error?.message ? [`${run.error.type}: ${shown(run.error.message)}`] : [];
  return [`The tests failed: ${how}`, ...message, ...streams(run)].join('\n');
}

function streams(run: RunResult): string[] {
  return [`Your code printed:\n${shown(run.stdout) || '(nothing)'}`, ...traceback(run)];
}

function traceback(run: RunResult): string[] {
  if (run.stderr.trim() !== '') return [`Error output:\n${shown(run.stderr.trimEnd())}`];
  return run.error ? [`Error: ${crashOf(run).type}: ${shown(run.error.message)}`] : [];
}

function sentence(text: string): string {
  return `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}.`;
}
