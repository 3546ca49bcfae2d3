import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import type { Cli, Start } from '../cli.js';
import { CliError, EXIT } from '../errors.js';
import { runBench } from '../machine/bench.js';
import { integer } from '../options.js';
import { MEMORY_USES } from '../tasks/task-spec.js';
import { FORMATS } from './problems.js';
import { type EvalOptions, runEval } from './run-eval.js';

/** `eval run`, `eval retrieval`. */
export function addEval(program: Command, start: Start): void {
  const evaluation = program.command('eval').description('how well a data set is solved, and how well memory finds');
  addRetrieval(evaluation, start);
  evaluation
    .command('run [file]')
    .description('hand in every problem and report pass@k')
    .addOption(new Option('--format <format>', "the file's format; etude is a TaskSpec per line").choices([...FORMATS]))
    .option('--limit <n>', 'only the first n problems', integer(1, 1_000_000))
    .option('--attempts <n>', 'at most, per task (default: 4)', integer(1, 100))
    .option('--concurrency <n>', 'tasks at once', integer(1, 256), 2)
    .option('--samples <n>', 'tasks per problem, for pass@k', integer(1, 1_000), 1)
    .addOption(
      new Option('--memory <use>', 'off: problems do not help each other; read: recalls only; learn: training')
        .choices([...MEMORY_USES])
        .default('off'),
    )
    .option('--agent <name>', 'who owns what is learned', 'eval')
    .option('--resume <run>', 'go on with a run that was interrupted')
    .action((file: string | undefined, options: EvalOptions, command: Command) => start(command, (cli) => runEval(cli, file, options)));
}

function addRetrieval(evaluation: Command, start: Start): void {
  evaluation
    .command('retrieval [dirs...]')
    .description('nDCG@10 and recall@100 by vectors, by words, and by both; without a folder, over sets that are generated')
    .addOption(new Option('--format <format>', 'of the folders').choices(['beir']).default('beir'))
    .addOption(new Option('--adapter <adapter>', 'the database that is filled for it').choices(['sqlite', 'qdrant']).default('sqlite'))
    .addOption(new Option('--embedder <embedder>', 'as ETUDE_EMBEDDER').choices(['auto', 'sentence', 'lexical']))
    .addOption(new Option('--half <half>', 'of the queries').choices(['choose', 'report', 'all']).default('all'))
    .option('--sweep', 'also every weight of vectors against words, on the half for choosing')
    .action((dirs: string[], options: RetrievalOptions, command: Command) => start(command, (cli) => evalRetrieval(cli, dirs, options)));
}

export interface RetrievalOptions {
  readonly format: 'beir';
  readonly adapter: string;
  readonly embedder?: string;
  readonly half: string;
  readonly sweep?: boolean;
}

/**
 * `etude eval retrieval`: nDCG@10 and recall@100 over sets in BEIR's format; without a folder, over the generated ones. In a
 * process of its own: the command line knows no database and no model.
 */
export async function evalRetrieval(cli: Cli, dirs: readonly string[], options: RetrievalOptions): Promise<number> {
  const missing = dirs.find((dir) => !existsSync(join(dir, 'corpus.jsonl')));
  if (missing !== undefined) {
    throw new CliError(EXIT.notFound, `${missing} is no set in BEIR's format: it has no corpus.jsonl`, [
      'a set is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv',
    ]);
  }
  return runBench(cli, 'retrieval', retrievalArgs(dirs, options));
}

export function retrievalArgs(dirs: readonly string[], { adapter, embedder, half, sweep }: RetrievalOptions): string[] {
  const chosen = embedder === undefined ? [] : ['--embedder', embedder];
  return ['--adapter', adapter, ...chosen, '--half', half, ...(sweep ? ['--sweep'] : []), ...dirs.map((dir) => resolve(dir))];
}
