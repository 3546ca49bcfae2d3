import { type Task, TaskState, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { z } from 'zod';
import { type Output, plural, Progress, table } from '../output.js';
import { SCRIPTED } from '../show.js';
import { elapsedMs, stopWord, verdictWord } from '../tasks/task-lines.js';

/** What one sample of one problem came to. A line of the run's file and of `--json`. */
export const SampleResult = z.object({
  kind: z.literal('problem'),
  id: z.string(),
  /** From 1. */
  sample: z.number().int(),
  task: z.string().nullable(),
  solved: z.boolean(),
  /** AC, WA, TLE, MLE, RE, or NONE where nothing could be judged. */
  verdict: z.string(),
  stopReason: z.string(),
  attempts: z.number(),
  modelCalls: z.number(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  seconds: z.number(),
  skill: z.string(),
  scripted: z.boolean(),
  /** Something other than the answer went wrong; a resumed run tries again. */
  error: z.string().nullable(),
});
export type SampleResult = z.infer<typeof SampleResult>;

export const sampleKey = ({ id, sample }: Pick<SampleResult, 'id' | 'sample'>) => `${id}#${sample}`;

export function taskSample(id: string, sample: number, task: Task): SampleResult {
  const { result, usage, error } = task;
  return {
    kind: 'problem',
    id,
    sample,
    task: task.name,
    solved: task.state === TaskState.SUCCEEDED && result?.verdict === Verdict.AC,
    verdict: result ? verdictWord(result.verdict) : 'NONE',
    stopReason: stopWord(task.stopReason),
    attempts: usage?.attempts ?? 0,
    modelCalls: usage?.modelCalls ?? 0,
    inputTokens: Number(usage?.inputTokens ?? 0n),
    outputTokens: Number(usage?.outputTokens ?? 0n),
    seconds: elapsedMs(task) / 1_000,
    skill: result?.skill ?? '',
    scripted: result?.scripted ?? false,
    error: error ? `${error.code}: ${error.message}` : null,
  };
}

export function refusedSample(id: string, sample: number, message: string): SampleResult {
  const nothing = { attempts: 0, modelCalls: 0, inputTokens: 0, outputTokens: 0, seconds: 0, skill: '', scripted: false };
  return { kind: 'problem', id, sample, task: null, solved: false, verdict: 'NONE', stopReason: 'error', ...nothing, error: message };
}

const K_VALUES = [1, 5, 10, 25, 50, 100];

export interface Summary {
  readonly kind: 'summary';
  readonly run: string;
  readonly problems: number;
  readonly samples: number;
  readonly passAt1: number;
  /** By k, for the usual k up to the number of samples. */
  readonly passAtK: Readonly<Record<string, number>>;
  /** Over all samples. */
  readonly verdicts: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly modelCalls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly tokens: number;
  /** Of this process; a resumed run counts from its resumption. */
  readonly seconds: number;
  readonly errors: number;
  readonly bySkill: number;
  readonly scripted: boolean;
}

/** @param results exactly one per problem and sample */
export function summarize(run: string, results: readonly SampleResult[], samples: number, seconds: number): Summary {
  const right = new Map<string, number>();
  const verdicts: Record<string, number> = {};
  for (const { id, solved, verdict } of results) {
    right.set(id, (right.get(id) ?? 0) + (solved ? 1 : 0));
    verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
  }
  const sum = (pick: (result: SampleResult) => number) => results.reduce((total, result) => total + pick(result), 0);
  const counts = [...right.values()];
  const ks = [...new Set([...K_VALUES.filter((k) => k <= samples), samples])];
  const inputTokens = sum((result) => result.inputTokens);
  const outputTokens = sum((result) => result.outputTokens);
  return {
    kind: 'summary',
    run,
    problems: right.size,
    samples,
    passAt1: meanPassAtK(counts, samples, 1),
    passAtK: Object.fromEntries(ks.map((k) => [k, meanPassAtK(counts, samples, k)])),
    verdicts,
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
 * As a product, since the binomials overflow.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let allWrong = 1;
  for (let i = n - c + 1; i <= n; i++) allWrong *= 1 - k / i;
  return 1 - allWrong;
}

/** Mean over problems. @param right how many samples of each problem were right, of `n` each */
export function meanPassAtK(right: readonly number[], n: number, k: number): number {
  return right.length === 0 ? 0 : right.reduce((sum, c) => sum + passAtK(n, c, k), 0) / right.length;
}

/** How far a run is, on stderr; each finished problem as data. */
export class EvalProgress {
  readonly #progress: Progress;
  #done = 0;

  constructor(
    private readonly out: Output,
    private readonly total: number,
  ) {
    this.#progress = new Progress(out);
  }

  finished(result: SampleResult): void {
    const { id, sample, verdict, attempts, modelCalls, seconds, skill, scripted, error } = result;
    const parts = [plural(attempts, 'attempt'), plural(modelCalls, 'model call'), `${seconds.toFixed(1)} s`];
    if (skill) parts.push(`by ${skill}`);
    if (error) parts.push(error);
    const name = sample > 1 ? `${id} #${sample}` : id;
    this.out.data(result, `${verdict.padEnd(5)} ${name.padEnd(16)} ${parts.join(', ')}${scripted ? ` ${SCRIPTED}` : ''}`);
    this.#done++;
    this.#progress.tell(`${this.#done}/${this.total} done`);
  }

  end(): void {
    this.#progress.end();
  }
}

const numberText = (value: string | number | boolean | Readonly<Record<string, number>>) =>
  typeof value === 'object'
    ? Object.entries(value)
        .map(([key, n]) => `${key} ${n}`)
        .join(', ')
    : String(value);

/** Every number of a summary, as rows. */
export function summaryText(summary: Summary): string {
  const rows = Object.entries(summary).map(([name, value]: [string, Summary[keyof Summary]]) => [name, numberText(value)]);
  return `\n${table(rows.slice(1))}${summary.scripted ? `\n${SCRIPTED}: the answers came from a script` : ''}`;
}
