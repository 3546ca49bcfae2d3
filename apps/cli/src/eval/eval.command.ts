import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { clone } from '@bufbuild/protobuf';
import { Mode, type TaskSpec, TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import type { Command } from 'commander';
import { type Cli, commandLine, type Gateway, type Start, withGateway } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { CliError, EXIT, explain } from '../errors.js';
import { addBench } from '../machine/bench.js';
import { integer } from '../options.js';
import { plural } from '../output.js';
import { AWAY_MAX_MS, callSettings, ridingOut, sayingHowToGoOn } from '../calls.js';
import { MEMORY_USES, type MemoryUse, setAttempts, useMemory } from '../tasks/task-request.js';
import { waitForTask } from '../tasks/watch-task.js';
import { sampleOf, type SampleResult, sampleText, summarize, summaryText } from './eval-result.js';
import { type EvalPlan, EvalStore } from './eval-store.js';
import { type Format, FORMATS, type Problem, readProblems } from './problems.js';

interface EvalOptions {
  readonly format?: Format;
  readonly limit?: number;
  readonly attempts?: number;
  readonly concurrency: number;
  readonly samples: number;
  readonly memory: MemoryUse;
  readonly agent: string;
  readonly resume?: string;
}

interface Sample {
  readonly problem: Problem;
  readonly sample: number;
}

/** A problem's TaskSpec with the settings of the run. The reference is sent only if the run learns from it. */
function evalSpec(problem: Problem, plan: Pick<EvalPlan, 'memory' | 'attempts' | 'agent' | 'run'>): TaskSpec {
  const spec = clone(TaskSpecSchema, problem.spec);
  const learns = plan.memory === 'learn';
  spec.agent = plan.agent;
  spec.mode = learns ? Mode.TRAINING : Mode.INFERENCE;
  useMemory(spec, plan.memory);
  spec.labels['eval'] = plan.run;
  if (plan.attempts !== null) setAttempts(spec, plan.attempts);
  if (!learns) spec.referenceSolution = '';
  return spec;
}

const newRunId = (now: Date) =>
  `${now.toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')}-${randomBytes(2).toString('hex')}`;

function openRun(cli: Cli, file: string | undefined, options: EvalOptions): { store: EvalStore; problems: readonly Problem[] } {
  if (options.resume) {
    const store = EvalStore.open(cli.home, options.resume);
    const { problems, sha256 } = readProblems(store.plan.format, store.plan.file);
    if (sha256 !== store.plan.sha256)
      throw new CliError(EXIT.conflict, `${store.plan.file} has changed since run ${options.resume} began`, ['start a new run']);
    return { store, problems };
  }
  if (!file || !options.format) throw new CliError(EXIT.usage, 'eval run needs --format and a file, or --resume RUN');
  const path = resolve(file);
  const { problems, sha256 } = readProblems(options.format, path);
  const now = new Date();
  const { format, limit = null, attempts = null, samples, memory, agent } = options;
  const plan = { run: newRunId(now), format, file: path, sha256, limit, attempts, samples, memory, agent, createdAt: now.toISOString() };
  return { store: EvalStore.create(cli.home, plan), problems };
}

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

/** A problem that the gateway refuses counts as an error of that problem; a gateway that is gone ends the run. */
async function runSample(
  cli: Cli,
  gateway: Gateway,
  store: EvalStore,
  { problem, sample }: Sample,
  signal: AbortSignal,
): Promise<SampleResult> {
  const request = { spec: evalSpec(problem, store.plan), requestId: store.requestId(problem.id, sample) };
  try {
    const settings = { ...callSettings(cli), signal };
    const task = await ridingOut(signal, () => gateway.tasks.submitTask(request, settings), AWAY_MAX_MS);
    return sampleOf(problem.id, sample, await waitForTask(gateway, task.name, signal));
  } catch (error) {
    const known = explain(error, gateway.address);
    if (known instanceof CliError && known.exit === EXIT.usage)
      return sampleOf(problem.id, sample, null, [known.message, ...known.hint].join('; '));
    throw error;
  }
}

/** `etude eval run`: returns 0 if every problem was judged, else 1. How many were solved is data, not a failure. */
async function runEval(cli: Cli, options: EvalOptions, [file]: readonly string[]): Promise<number> {
  const { store, problems } = openRun(cli, file, options);
  const { plan } = store;
  const wanted = problems.slice(0, plan.limit ?? problems.length);
  const samples = wanted.flatMap((problem) => Array.from({ length: plan.samples }, (_, i) => ({ problem, sample: i + 1 })));
  const resultOf = ({ problem, sample }: Sample) => store.latest(problem.id, sample);
  const left = samples.filter((sample) => resultOf(sample)?.error !== null);
  const resumeLine = commandLine(cli, `eval run --resume ${plan.run}`);
  let done = samples.length - left.length;
  cli.out.note(`run ${plan.run}: ${plural(wanted.length, 'problem')}, ${left.length} to go, memory ${plan.memory}`);
  const print = (result: SampleResult) => cli.out.data(result, sampleText(result));
  for (const result of samples.flatMap((sample) => (left.includes(sample) ? [] : (resultOf(sample) ?? [])))) print(result);
  const started = performance.now();
  const run = () =>
    withGateway(cli, async (gateway) => {
      await inParallel(left, options.concurrency, cli.signal, async (sample, signal) => {
        const result = await runSample(cli, gateway, store, sample, signal);
        store.add(result);
        print(result);
        cli.out.status(`${++done}/${samples.length} done`);
      });
      return EXIT.ok;
    });
  await sayingHowToGoOn(cli, run, () => `stopped before its end; go on with: ${resumeLine}`);
  const results = samples.flatMap((sample) => resultOf(sample) ?? []);
  const summary = summarize(plan.run, results, plan.samples, (performance.now() - started) / 1_000);
  cli.out.data(summary, summaryText(summary));
  if (summary.errors > 0) cli.out.note(`${summary.errors} could not be judged; try those again with: ${resumeLine}`);
  return summary.errors > 0 ? EXIT.failed : EXIT.ok;
}

export function addEval(program: Command, start: Start): void {
  const evaluation = addNoun(program, start, 'eval', 'how well problems are solved, and memory finds', [
    hand<EvalOptions>({
      command: 'run [file]',
      help: 'hand in every problem and report pass@k',
      flags: {
        '--format <format>': { help: "the file's format; etude is a TaskSpec per line", choices: FORMATS },
        '--limit <n>': { help: 'only the first n problems', parse: integer(1, 1_000_000) },
        '--attempts <n>': { help: 'at most, per task (default: 4)', parse: integer(1, 100) },
        '--concurrency <n>': { help: 'tasks at once', usual: 2, parse: integer(1, 256) },
        '--samples <n>': { help: 'tasks per problem, for pass@k', usual: 1, parse: integer(1, 1_000) },
        '--memory <use>': {
          help: 'off: none; read: recalls only; learn: training',
          choices: MEMORY_USES,
          usual: 'off',
        },
        '--agent <name>': { help: 'who owns what is learned', usual: 'eval' },
        '--resume <run>': 'go on with a run that was interrupted',
      },
      run: runEval,
    }),
  ]);
  addBench(evaluation, start, 'retrieval [dirs...]', 'nDCG@10 and recall@100: docs/retrieval.md', 'retrieval');
}
