import { statSync } from 'node:fs';
import { parsedJson } from '@etude/contracts/json';
import type { Command } from 'commander';
import type { Cli, Start } from '../cli.js';
import { addNoun, hand } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { integer } from '../options.js';
import { plural, table } from '../output.js';
import { MEMORY_USES } from '../tasks/task-request.js';
import { readBytes } from '../files.js';
import {
  inParallel,
  newRunId,
  RUN_FLAGS,
  runSample,
  type SampleResult,
  sampleText,
  summarize,
  summaryRows,
  type TaskSettings,
  workOn,
} from './run-sample.js';
import { FAMILIES } from './families.command.js';
import { REPORT } from './report.command.js';
import { FILE_MAX_BYTES, LINE_FORMATS, parseEntries, type Problem, READERS, type RefusedProblem, unpack } from './problems.js';
import { filesOfFolder, filesOfZip, kattisProblems } from './kattis.js';
import { liveCodeBenchProblem } from './livecodebench.js';
import { usacoProblems } from './usaco.js';

const FORMATS = [...LINE_FORMATS, 'livecodebench', 'usaco', 'kattis'] as const;
type Format = (typeof FORMATS)[number];

/** @param asked undefined: the format is detected @throws CliError for a file with an error, without problems, or of an unknown format */
export async function readProblemSet(path: string, asked?: Format) {
  const all = await readAll(path, asked);
  if (all.length === 0) throw new CliError(EXIT.usage, `${path} has no problems`);
  return {
    problems: all.filter((one): one is Problem => 'spec' in one),
    refused: all.filter((one): one is RefusedProblem => 'refused' in one),
  };
}

/** Whether this file of a Kattis package is needed for a task. */
const isWanted = (path: string) => !/(?:^|\/)(?:submissions|__MACOSX|\.git|input_(?:format_)?validators?)\//.test(path);

async function readAll(path: string, asked?: Format): Promise<ReadonlyArray<Problem | RefusedProblem>> {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return kattisProblems(filesOfFolder(path, isWanted), path);
  const bytes = readBytes(path, FILE_MAX_BYTES);
  const isZip = bytes.subarray(0, 4).toString('latin1') === 'PK\u0003\u0004';
  if (isZip) return kattisProblems(await filesOfZip(bytes, path, isWanted), path);
  const text = unpack(bytes, path);
  const format = asked ?? formatOf(text);
  if (format === null) throw new CliError(EXIT.usage, `the format of ${path} is unknown`, [`pass --format ${FORMATS.join('|')}`]);
  if (format === 'kattis') throw new CliError(EXIT.usage, `${path} is neither a Kattis package nor a zip of one`);
  if (format === 'usaco') return usacoProblems(parsedJson(text), path);
  return parseEntries(format === 'livecodebench' ? liveCodeBenchProblem : READERS[format], text, path);
}

const MARKS = { livecodebench: 'question_content', humaneval: 'canonical_solution', mbpp: 'test_list', etude: 'evaluator' } as const;

function formatOf(text: string): Format | null {
  const line = /\S.*/.exec(text)?.[0] ?? '';
  const parsed = parsedJson(line) ?? parsedJson(text);
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  if (typeof first !== 'object' || first === null) return null;
  const [inner] = Object.values(first) as unknown[];
  if (typeof inner === 'object' && inner !== null && 'problem_level' in inner) return 'usaco';
  return (Object.keys(MARKS) as Array<keyof typeof MARKS>).find((format) => MARKS[format] in first) ?? null;
}

interface EvalOptions extends TaskSettings {
  readonly format?: Format;
  readonly limit?: number;
  readonly concurrency: number;
  readonly samples: number;
  readonly resume?: string;
}

/** `etude eval run`: returns 0 if every problem got a verdict, solved or not. Returns 1 if a problem was refused or got no verdict. */
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
        '--format <format>': { help: 'format of the file (default: detected); etude: one TaskSpec per line', choices: FORMATS },
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
