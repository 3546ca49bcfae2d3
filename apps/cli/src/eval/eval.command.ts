import { hash, randomBytes } from 'node:crypto';
import { clone } from '@bufbuild/protobuf';
import { Mode, type TaskSpec, TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Command } from 'commander';
import { type Cli, type Gateway, type Start, withGateway } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { CliError, EXIT, explain } from '../errors.js';
import { integer } from '../options.js';
import { plural, table } from '../output.js';
import { AWAY_MAX_MS, callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { MEMORY_USES, type MemoryUse, setAttempts, STRATEGY, useMemory } from '../tasks/task-request.js';
import { waitForLearning, waitForTask } from '../tasks/watch-task.js';
import { sampleOf, type SampleResult, sampleText, summarize, summaryRows } from './eval-result.js';
import { type Format, FORMATS, type Problem, readProblems } from './problems.js';

interface EvalOptions {
  readonly format: Format;
  readonly limit?: number;
  readonly attempts?: number;
  readonly concurrency: number;
  readonly samples: number;
  readonly memory: MemoryUse;
  readonly agent: string;
  readonly strategy?: string;
  readonly resume?: string;
}

interface Sample {
  readonly problem: Problem;
  readonly sample: number;
}

/** A problem's TaskSpec with the settings of the run. The reference is sent only if the run learns from it. */
function evalSpec(problem: Problem, run: string, { memory, attempts, agent, strategy }: EvalOptions): TaskSpec {
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

const newRunId = (now: Date) =>
  `${now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')}-${randomBytes(2).toString('hex')}`;

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
async function runSample(cli: Cli, gateway: Gateway, run: string, of: Sample, options: EvalOptions, signal: AbortSignal) {
  const { problem, sample } = of;
  const spec = evalSpec(problem, run, options);
  try {
    for (let again = 0; ; again++) {
      const request = { spec, requestId: requestIdOf(run, of, again) };
      const submit = () => gateway.tasks.submitTask(request, { ...callSettings(cli), signal });
      const task = await ridingOut(signal, submit, AWAY_MAX_MS);
      // The task ended in an error before this run was resumed.
      if (task.endTime && task.error) continue;
      const finished = await waitForTask(gateway, task.name, signal);
      return sampleOf(problem.id, sample, await waitForLearning(gateway, finished, signal));
    }
  } catch (error) {
    const known = explain(error, gateway.address);
    if (known instanceof CliError && known.exit === EXIT.usage)
      return sampleOf(problem.id, sample, null, [known.message, ...known.hint].join('; '));
    throw error;
  }
}

/** `etude eval run`: returns 0 if every problem got a verdict, else 1. Unsolved problems are data, not a failure. */
async function runEval(cli: Cli, options: EvalOptions, [file = '']: readonly string[]): Promise<number> {
  const { limit, samples: count, concurrency, memory } = options;
  const problems = readProblems(options.format, file).slice(0, limit);
  const run = options.resume ?? newRunId(new Date());
  const samples = problems.flatMap((problem) => Array.from({ length: count }, (_, i) => ({ problem, sample: i + 1 })));
  const results: SampleResult[] = [];
  cli.out.note(`run ${run}: ${plural(problems.length, 'problem')}, memory ${memory}`);
  const started = performance.now();
  const work = () =>
    withGateway(cli, async (gateway) => {
      await inParallel(samples, concurrency, cli.signal, async (sample, signal) => {
        const result = await runSample(cli, gateway, run, sample, options, signal);
        results.push(result);
        cli.out.data(result, sampleText(result));
        cli.out.status(`${results.length}/${samples.length} done`);
      });
      return EXIT.ok;
    });
  const resume = `the same command with --resume ${run}`;
  await sayingHowToGoOn(cli, work, () => `stopped early; ${resume} continues the run`);
  const summary = summarize(run, results, count, (performance.now() - started) / 1_000);
  cli.out.data(summary, `\n${table(summaryRows(summary))}`);
  if (summary.errors > 0) cli.out.note(`${summary.errors} samples got no verdict; ${resume} retries them`);
  return summary.errors > 0 ? EXIT.failed : EXIT.ok;
}

export function addEval(program: Command, start: Start): void {
  addNoun(program, start, 'eval', 'measure how many problems are solved', [
    hand<EvalOptions>({
      command: 'run <file>',
      help: 'submit every problem and report pass@k',
      flags: {
        '--format <format>': { help: "the file's format; etude is a TaskSpec per line", choices: FORMATS, required: true },
        '--limit <n>': { help: 'only the first n problems', parse: integer(1, 1_000_000) },
        '--attempts <n>': { help: 'most attempts per task (default: 4)', parse: integer(1, 100) },
        '--concurrency <n>': { help: 'tasks at once', usual: 2, parse: integer(1, 256) },
        '--samples <n>': { help: 'tasks per problem, for pass@k', usual: 1, parse: integer(1, 1_000) },
        '--memory <use>': {
          help: 'off: no memory; read: recall only; learn: training mode',
          choices: MEMORY_USES,
          usual: 'off',
        },
        '--agent <name>': { help: 'agent that owns the learned facts and skills', usual: 'eval' },
        '--strategy <strategy>': STRATEGY,
        '--resume <run>': 'continue this run; pass the same file and flags',
      },
      run: runEval,
    }),
  ]);
}
