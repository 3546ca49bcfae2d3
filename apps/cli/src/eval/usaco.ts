import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { decodeUtf8 } from '../files.js';
import { judgedProblem, type Problem, type ProgramCase, programLimits, type RefusedProblem } from './problems.js';

/** A problem of usaco_subset307_dict.json or usaco_v2_dict.json (github.com/princeton-nlp/USACO). */
const Entry = z.object({
  problem_id: z.string().min(1).nullish(),
  cp_id: z.union([z.string().min(1), z.number()]).nullish(),
  description: z.string().min(1),
  input_format: z.string().nullish(),
  output_format: z.string().nullish(),
  samples: z.array(z.looseObject({ input: z.string(), output: z.string() })).nullish(),
  num_tests: z.int().min(1).nullish(),
  /** In seconds. */
  runtime_limit: z.number().positive().nullish(),
  /** In MB. */
  memory_limit: z.number().positive().nullish(),
});
type Entry = z.infer<typeof Entry>;

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Reads the problems of a file. Their tests are in `tests/ID/` in the file's folder, or one folder deeper. @throws CliError */
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
  const names = [entry.problem_id, entry.cp_id, id].flatMap((name) => name ?? []).map(String);
  const folder = roots.flatMap((root) => names.map((name) => join(root, name))).find(isFolder);
  if (folder === undefined) throw new Error(`there is no folder tests/${names[0]}`);
  const samples = (entry.samples ?? []).map(({ input, output }) => ({ stdin: input, expectedStdout: output, public: true }));
  const isSample = ({ stdin }: ProgramCase) => samples.some((sample) => sample.stdin.trim() === stdin.trim());
  const hidden = testsIn(folder, entry.num_tests ?? null);
  const cases = [...samples, ...hidden.filter((test) => !isSample(test))];
  const texts = [entry.description, entry.input_format, entry.output_format].filter(
    (text, at) => text && (at === 0 || !entry.description.includes(text)),
  );
  const limits = programLimits(cases, { seconds: entry.runtime_limit, memoryMiB: entry.memory_limit });
  return { prompt: texts.join('\n\n'), limits, evaluator: { ioCases: { cases } } };
}

/** The pairs I.1 and O.1, or 1.in and 1.out, and so on. @param count null: as many as there are inputs @throws Error for a missing file */
function testsIn(folder: string, count: number | null): ProgramCase[] {
  const files = new Set(readdirSync(folder));
  const text = (name: string) => {
    if (!files.has(name)) throw new Error(`${folder} has no ${name}`);
    return decodeUtf8(readFileSync(join(folder, name)), name);
  };
  const length = count ?? [...files].filter((name) => /^I\.\d+$|^\d+\.in$/.test(name)).length;
  return Array.from({ length: Math.max(1, length) }, (_, at) => {
    const number = at + 1;
    const [input, output] = files.has(`I.${number}`) ? [`I.${number}`, `O.${number}`] : [`${number}.in`, `${number}.out`];
    return { stdin: text(input), expectedStdout: text(output), public: false };
  });
}
