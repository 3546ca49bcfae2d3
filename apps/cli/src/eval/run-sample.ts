import { hash, randomBytes } from 'node:crypto';
import { clone } from '@bufbuild/protobuf';
import { Mode, type Task, type TaskEvent, type TaskSpec, TaskSpecSchema, TaskState, Verdict } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { AWAY_MAX_MS, callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import type { Flags } from '../command.js';
import { CliError, EXIT, explain } from '../errors.js';
import { integer } from '../options.js';
import { type MemoryUse, setAttempts, STRATEGY, useMemory } from '../tasks/task-request.js';
import { waitForLearning, waitForTask } from '../tasks/watch-task.js';
import { plural } from '../output.js';
import { SCRIPTED } from '../show.js';
import { allCalls, elapsedMs, stopWord, verdictWord } from '../tasks/task-lines.js';
import type { Problem } from './problems.js';

export const RUN_FLAGS: Flags = {
  '--attempts <n>': { help: 'most attempts per task (default: 4)', parse: integer(1, 100) },
  '--concurrency <n>': { help: 'tasks at once', usual: 2, parse: integer(1, 256) },
  '--strategy <strategy>': STRATEGY,
  '--resume <run>': 'continue this run; pass the same file and flags',
};

export interface TaskSettings {
  readonly attempts?: number;
  readonly memory: MemoryUse;
  readonly agent: string;
  readonly strategy?: string;
}

interface Sample {
  readonly problem: Problem;
  readonly sample: number;
  readonly onEvent?: (event: TaskEvent) => void;
}

function evalSpec(problem: Problem, run: string, { memory, attempts, agent, strategy }: TaskSettings): TaskSpec {
  const spec = clone(TaskSpecSchema, problem.spec);
  const learns = memory === 'learn';
  spec.agent = agent;
  if (strategy !== undefined) spec.strategy = strategy;
  spec.mode = learns ? Mode.TRAINING : Mode.INFERENCE;
  useMemory(spec, memory);
  spec.labels['eval'] = run;
  if (attempts !== undefined) setAttempts(spec, attempts);
  if (!learns) spec.referenceSolution = '';
  return spec;
}

export const newRunId = (now: Date) =>
  `${now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')}-${randomBytes(2).toString('hex')}`;

/** Runs `work`. If `work` is interrupted, a note says how to continue. @returns a text that says how to repeat the run */
export async function workOn(cli: Cli, run: string, work: (gateway: Gateway) => Promise<void>): Promise<string> {
  const resume = `the same command with --resume ${run}`;
  await sayingHowToGoOn(
    cli,
    () => withGateway(cli, work),
    () => `stopped early; ${resume} continues the run`,
  );
  return resume;
}

/** A resumed run finds its tasks by the same ids. @param again number of this sample's tasks that have ended in an error */
const requestIdOf = (run: string, { problem, sample }: Sample, again: number) =>
  `eval-${run}-${hash('sha256', problem.id).slice(0, 20)}-${sample}${again > 0 ? `-again${again}` : ''}`;

/** Works on `concurrency` items at a time. The first failure stops the others and is thrown. */
export async function inParallel<T>(
  items: readonly T[],
  concurrency: number,
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const lane = async () => {
    try {
      for (let item = queue.shift(); item !== undefined && !either.aborted; item = queue.shift()) await work(item, either);
    } catch (error) {
      failed.abort(error);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  either.throwIfAborted();
}

/** Runs one sample. A refusal by the gateway is an error of this sample; an unreachable gateway ends the run. */
export async function runSample(cli: Cli, gateway: Gateway, run: string, of: Sample, options: TaskSettings, signal: AbortSignal) {
  const { problem, sample, onEvent } = of;
  const spec = evalSpec(problem, run, options);
  try {
    for (let again = 0; ; again++) {
      const request = { spec, requestId: requestIdOf(run, of, again) };
      const submit = () => gateway.tasks.submitTask(request, { ...callSettings(cli), signal });
      const task = await ridingOut(signal, submit, AWAY_MAX_MS);
      // The task ended in an error before this run was resumed.
      if (task.endTime && task.error) continue;
      const finished = await waitForTask(gateway, task.name, signal, onEvent);
      return sampleOf(problem.id, sample, await waitForLearning(gateway, finished, signal));
    }
  } catch (error) {
    const known = explain(error, gateway.address);
    if (known instanceof CliError && known.exit === EXIT.usage)
      return sampleOf(problem.id, sample, null, [known.message, ...known.hint].join('; '));
    throw error;
  }
}

export type SampleResult = ReturnType<typeof sampleOf>;

/** @param sample from 1 @param task null if the gateway refused the task for the reason `error` */
export function sampleOf(id: string, sample: number, task: Task | null, error: string | null = null) {
  const { result, usage } = task ?? {};
  return {
    kind: 'problem' as const,
    id,
    sample,
    task: task?.name ?? null,
    solved: task?.state === TaskState.SUCCEEDED && result?.verdict === Verdict.AC,
    verdict: result?.verdict ? verdictWord(result.verdict) : 'NONE',
    stopReason: task ? stopWord(task.stopReason) : 'error',
    attempts: usage?.attempts ?? 0,
    // Including the calls for learning.
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
 * Chance that at least one of `k` samples is right, estimated without bias from `n` samples of which `c` were right:
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
