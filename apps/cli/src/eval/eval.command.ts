import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { EXIT } from '../errors.js';
import { integer } from '../options.js';
import { plural, table } from '../output.js';
import { MEMORY_USES } from '../tasks/task-request.js';
import { type SampleResult, sampleText, summarize, summaryRows } from './eval-result.js';
import { FAMILIES } from './families.command.js';
import { type Format, FORMATS, readProblemSet } from './problem-set.js';
import { REPORT } from './report.command.js';
import { inParallel, newRunId, RUN_FLAGS, runSample, type TaskSettings, workOn } from './run-sample.js';

interface EvalOptions extends TaskSettings {
  readonly format?: Format;
  readonly limit?: number;
  readonly concurrency: number;
  readonly samples: number;
  readonly resume?: string;
}

/** `etude eval run`: returns 0 if every problem got a verdict, else 1, as with refused problems. Unsolved ones are data, not a failure. */
async function runEval(cli: Cli, options: EvalOptions, [file = '']: readonly string[]): Promise<number> {
  const { limit, samples: count, concurrency, memory } = options;
  const { problems: all, refused } = await readProblemSet(file, options.format);
  const problems = all.slice(0, limit);
  for (const { id, refused: reason } of refused) cli.out.data({ kind: 'refused', id, reason }, `refused  ${id}  ${reason}`);
  const run = options.resume ?? newRunId(new Date());
  const samples = problems.flatMap((problem) => Array.from({ length: count }, (_, i) => ({ problem, sample: i + 1 })));
  const results: SampleResult[] = [];
  cli.out.note(`run ${run}: ${plural(problems.length, 'problem')}, memory ${memory}`);
  const started = performance.now();
  const resume = await workOn(cli, run, (gateway) =>
    inParallel(samples, concurrency, cli.signal, async (sample, signal) => {
      const result = await runSample(cli, gateway, run, sample, options, signal);
      results.push(result);
      cli.out.data(result, sampleText(result));
      cli.out.status(`${results.length}/${samples.length} done`);
    }),
  );
  const summary = { ...summarize(run, results, count, (performance.now() - started) / 1_000), refused: refused.length };
  cli.out.data(summary, `\n${table(summaryRows(summary))}`);
  if (summary.errors > 0) cli.out.note(`${summary.errors} samples got no verdict; ${resume} retries them`);
  return summary.errors + refused.length > 0 ? EXIT.failed : EXIT.ok;
}

export function addEval(program: Command, start: Start): void {
  addNoun(program, start, 'eval', 'measure how many problems are solved', [
    hand<EvalOptions>({
      command: 'run <path>',
      help: 'submit every problem and report pass@k',
      flags: {
        '--format <format>': { help: 'format, if the content should not tell it; etude is a TaskSpec per line', choices: FORMATS },
        '--limit <n>': { help: 'only the first n problems', parse: integer(1, 1_000_000) },
        '--samples <n>': { help: 'tasks per problem, for pass@k', usual: 1, parse: integer(1, 1_000) },
        '--memory <use>': {
          help: 'off: no memory; read: recall only; learn: training mode',
          choices: MEMORY_USES,
          usual: 'off',
        },
        '--agent <name>': { help: 'agent that owns the learned facts and skills', usual: 'eval' },
        ...RUN_FLAGS,
      },
      run: runEval,
    }),
    FAMILIES,
    REPORT,
  ]);
}
