import { hash, randomBytes } from 'node:crypto';
import { clone } from '@bufbuild/protobuf';
import { Mode, type TaskEvent, type TaskSpec, TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { AWAY_MAX_MS, callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { type Cli, type Gateway, withGateway } from '../cli.js';
import type { Flags } from '../command.js';
import { CliError, EXIT, explain } from '../errors.js';
import { integer } from '../options.js';
import { type MemoryUse, setAttempts, STRATEGY, useMemory } from '../tasks/task-request.js';
import { waitForLearning, waitForTask } from '../tasks/watch-task.js';
import { sampleOf } from './eval-result.js';
import type { Problem } from './problems.js';

/** Flags of every kind of run. */
export const RUN_FLAGS: Flags = {
  '--attempts <n>': { help: 'most attempts per task (default: 4)', parse: integer(1, 100) },
  '--concurrency <n>': { help: 'tasks at once', usual: 2, parse: integer(1, 256) },
  '--strategy <strategy>': STRATEGY,
  '--resume <run>': 'continue this run; pass the same file and flags',
};

/** Settings of every task of a run. */
export interface TaskSettings {
  readonly attempts?: number;
  readonly memory: MemoryUse;
  readonly agent: string;
  readonly strategy?: string;
}

export interface Sample {
  readonly problem: Problem;
  readonly sample: number;
  readonly onEvent?: (event: TaskEvent) => void;
}

/** A problem's TaskSpec with the settings of the run. The reference is sent only if the run learns from it. */
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

/** Does the work of a run. An interruption notes how to continue. @returns how to repeat the run */
export async function workOn(cli: Cli, run: string, work: (gateway: Gateway) => Promise<void>): Promise<string> {
  const resume = `the same command with --resume ${run}`;
  const begin = () => withGateway(cli, async (gateway) => work(gateway).then(() => EXIT.ok));
  await sayingHowToGoOn(cli, begin, () => `stopped early; ${resume} continues the run`);
  return resume;
}

/** Equal for each repeat of a sample, so that a resumed run finds its tasks. @param again number of earlier tasks that ended in an error */
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
