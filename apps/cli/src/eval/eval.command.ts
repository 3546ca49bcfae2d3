import type { Command } from 'commander';
import type { Start } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { addBench } from '../machine/bench.js';
import { integer } from '../options.js';
import { MEMORY_USES } from '../tasks/task-request.js';
import { FORMATS } from './problems.js';
import { type EvalOptions, runEval } from './run-eval.js';

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
