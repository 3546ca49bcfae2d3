import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { bench } from '../machine/bench.js';
import { integer } from '../options.js';
import { MEMORY_USES } from '../tasks/task-request.js';
import { FORMATS } from './problems.js';
import { type EvalOptions, runEval } from './run-eval.js';

export function addEval(program: Command, start: Start): void {
  addNoun(program, start, 'eval', 'how well problems are solved, and memory finds', [
    hand<RetrievalOptions>({
      command: 'retrieval [dirs...]',
      help: 'nDCG@10 and recall@100; without a folder, over generated sets',
      flags: {
        '--format <format>': { help: 'of the folders', choices: ['beir'], usual: 'beir' },
        '--adapter <adapter>': { help: 'the database that is filled for it', choices: ['sqlite', 'qdrant'], usual: 'sqlite' },
        '--embedder <embedder>': { help: 'as ETUDE_EMBEDDER', choices: ['auto', 'sentence', 'lexical'] },
        '--half <half>': { help: 'of the queries', choices: ['choose', 'report', 'all'], usual: 'all' },
        '--sweep': 'also every weight of vectors against words',
      },
      run: evalRetrieval,
    }),
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
}

interface RetrievalOptions {
  readonly adapter: string;
  readonly embedder?: string;
  readonly half: string;
  readonly sweep?: boolean;
}

/** `eval retrieval`: runs in a process of its own, because the command line has no database and no model. */
async function evalRetrieval(cli: Cli, { adapter, embedder, half, sweep }: RetrievalOptions, dirs: readonly string[]): Promise<number> {
  const missing = dirs.find((dir) => !existsSync(join(dir, 'corpus.jsonl')));
  if (missing !== undefined) {
    throw new CliError(EXIT.notFound, `${missing} is no set in BEIR's format: it has no corpus.jsonl`, [
      'a set is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv',
    ]);
  }
  const chosen = embedder === undefined ? [] : ['--embedder', embedder];
  const flags = ['--adapter', adapter, ...chosen, '--half', half, ...(sweep ? ['--sweep'] : [])];
  return bench(cli, 'retrieval', [...flags, ...dirs.map((dir) => resolve(dir))]);
}
