import { type Task, TaskState, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { plural } from '../output.js';
import { SCRIPTED } from '../show.js';
import { allCalls, elapsedMs, stopWord, verdictWord } from '../tasks/task-lines.js';

export type SampleResult = ReturnType<typeof sampleOf>;

/**
 * Result of one sample of one problem.
 *
 * @param sample its number, from 1
 * @param task null if the gateway refused the task for the reason `error`
 */
export function sampleOf(id: string, sample: number, task: Task | null, error: string | null = null) {
  const { result, usage } = task ?? {};
  return {
    kind: 'problem' as const,
    id,
    sample,
    task: task?.name ?? null,
    solved: task?.state === TaskState.SUCCEEDED && result?.verdict === Verdict.AC,
    /** AC, WA, TLE, MLE, RE, or NONE without a verdict. */
    verdict: result?.verdict ? verdictWord(result.verdict) : 'NONE',
    stopReason: task ? stopWord(task.stopReason) : 'error',
    attempts: usage?.attempts ?? 0,
    // With those of learning.
    ...allCalls(task ?? {}),
    seconds: task ? elapsedMs(task) / 1_000 : 0,
    skill: result?.skill ?? '',
    scripted: result?.scripted ?? false,
    /** Error that is not a wrong answer; null without an error. */
    error: task?.error ? `${task.error.code}: ${task.error.message}` : error,
  };
}

const K_VALUES = [1, 5, 10, 25, 50, 100];

export type Summary = ReturnType<typeof summarize>;

/** @param results exactly one per problem and sample. @param seconds run time of this process */
export function summarize(run: string, results: readonly SampleResult[], samples: number, seconds: number) {
  const sum = (pick: (result: SampleResult) => number) => results.reduce((total, result) => total + pick(result), 0);
  const problems = [...Map.groupBy(results, ({ id }) => id).values()];
  const right = problems.map((of) => of.filter(({ solved }) => solved).length);
  const meanAt = (k: number) => right.reduce((total, c) => total + passAtK(samples, c, k), 0) / Math.max(1, right.length);
  const ks = [...new Set([...K_VALUES.filter((k) => k <= samples), samples])];
  const verdicts = [...Map.groupBy(results, ({ verdict }) => verdict)].map(([verdict, of]) => [verdict, of.length] as const);
  const inputTokens = sum((result) => result.inputTokens);
  const outputTokens = sum((result) => result.outputTokens);
  return {
    kind: 'summary',
    run,
    problems: problems.length,
    samples,
    passAt1: meanAt(1),
    /** pass@k by k, for the usual k up to the number of samples. */
    passAtK: Object.fromEntries(ks.map((k) => [k, meanAt(k)])) as Record<string, number>,
    verdicts: Object.fromEntries(verdicts) as Record<string, number>,
    attempts: sum((result) => result.attempts),
    modelCalls: sum((result) => result.modelCalls),
    inputTokens,
    outputTokens,
    tokens: inputTokens + outputTokens,
    seconds: Math.round(seconds * 1_000) / 1_000,
    errors: sum((result) => (result.error ? 1 : 0)),
    bySkill: sum((result) => (result.skill ? 1 : 0)),
    scripted: results.some((result) => result.scripted),
  };
}

/**
 * Chance that at least one of `k` samples is right, estimated without bias from `n` samples of which `c` were:
 * 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, "Evaluating Large Language Models Trained on Code", section 2.1).
 * Computed as a product, since the binomials overflow.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let allWrong = 1;
  for (let i = n - c + 1; i <= n; i++) allWrong *= 1 - k / i;
  return 1 - allWrong;
}

export function sampleText({ id, sample, verdict, attempts, modelCalls, seconds, skill, scripted, error }: SampleResult): string {
  const took = [plural(attempts, 'attempt'), plural(modelCalls, 'model call'), `${seconds.toFixed(1)} s`].join(', ');
  const name = sample > 1 ? `${id} #${sample}` : id;
  const more = [skill && `by ${skill}`, error, scripted ? SCRIPTED : ''].filter(Boolean);
  return [verdict.padEnd(5), name.padEnd(16), took, ...more].join('  ');
}

export const summaryRows = (summary: Summary): string[][] =>
  Object.entries(summary).map(([name, value]) => [name, typeof value === 'object' ? JSON.stringify(value) : String(value)]);
