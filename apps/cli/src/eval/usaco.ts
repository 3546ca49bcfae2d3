import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { decodeUtf8 } from '../files.js';
import { judgedProblem, programLimits, type ProgramCase, type RefusedProblem } from './judged-problem.js';
import type { Problem } from './problems.js';

/** A problem of usaco_subset307_dict.json or usaco_v2_dict.json (github.com/princeton-nlp/USACO). */
const Entry = z.object({
  problem_id: z.string().min(1).optional(),
  cp_id: z.union([z.string().min(1), z.number()]).optional(),
  description: z.string().min(1),
  input_format: z.string().nullish(),
  output_format: z.string().nullish(),
  samples: z.array(z.looseObject({ input: z.string(), output: z.string() })).nullish(),
  num_tests: z.int().min(1).optional(),
  /** Seconds. */
  runtime_limit: z.coerce.number().positive().optional(),
  /** MB. */
  memory_limit: z.coerce.number().positive().optional(),
});
type Entry = z.infer<typeof Entry>;

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Reads the problems of a file. Their tests are in `tests/ID/` beside it or in a folder beside it. @throws CliError */
export function usacoProblems(json: unknown, path: string): Array<Problem | RefusedProblem> {
  const read = z.record(z.string(), Entry).safeParse(json);
  if (!read.success) throw new CliError(EXIT.usage, `${path}: ${z.prettifyError(read.error)}`);
  const dir = dirname(path);
  const inner = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const roots = [dir, ...inner.map(({ name }) => join(dir, name))].map((root) => join(root, 'tests')).filter(isFolder);
  return Object.entries(read.data).map(([id, entry]) => judgedProblem(id, () => specJson(id, entry, roots)));
}

/** The outputs are compared token by token, as USACO does. */
function specJson(id: string, entry: Entry, roots: readonly string[]): object {
  const names = [entry.problem_id, entry.cp_id, id].flatMap((name) => (name === undefined ? [] : String(name)));
  const folder = roots.flatMap((root) => names.map((name) => join(root, name))).find(isFolder);
  if (folder === undefined) throw new Error(`there is no folder tests/${names[0]}`);
  const samples = (entry.samples ?? []).map(({ input, output }) => ({ stdin: input, expectedStdout: output, public: true }));
  const isSample = ({ stdin }: ProgramCase) => samples.some((sample) => sample.stdin.trim() === stdin.trim());
  const hidden = testsIn(folder);
  if (entry.num_tests !== undefined && entry.num_tests !== hidden.length)
    throw new Error(`${folder} has ${hidden.length} tests, and num_tests is ${entry.num_tests}`);
  const cases = [...samples, ...hidden.filter((test) => !isSample(test))];
  const texts = [entry.description, entry.input_format, entry.output_format].filter(
    (text, at) => text && (at === 0 || !entry.description.includes(text)),
  );
  const limits = programLimits(cases, { seconds: entry.runtime_limit, memoryMiB: entry.memory_limit });
  return { prompt: texts.join('\n\n'), limits, evaluator: { ioCases: { cases } } };
}

/** The pairs I.1 and O.1, or 1.in and 1.out, by number. @throws Error without any, and for an input without its output */
function testsIn(folder: string): ProgramCase[] {
  const files = new Set(readdirSync(folder));
  const numbers = [...files].flatMap((name) => /^(?:I\.(?=\d+$)|(?=\d+\.in$))(\d+)/.exec(name)?.[1] ?? []);
  if (numbers.length === 0) throw new Error(`${folder} has no tests`);
  return [...new Set(numbers)]
    .toSorted((a, b) => Number(a) - Number(b))
    .map((number) => {
      const [input, output] = files.has(`${number}.in`) ? [`${number}.in`, `${number}.out`] : [`I.${number}`, `O.${number}`];
      if (!files.has(output)) throw new Error(`${folder} has no ${output}`);
      const text = (name: string) => decodeUtf8(readFileSync(join(folder, name)), name);
      return { stdin: text(input), expectedStdout: text(output), public: false };
    });
}
