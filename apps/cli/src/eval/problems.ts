import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { create, fromJson, type JsonObject } from '@bufbuild/protobuf';
import { type TaskSpec, TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { decodeUtf8, readBytes } from '../files.js';

/** One problem of a data set, ready to be handed in. */
export interface Problem {
  /** As the data set calls it: "HumanEval/7". Unique in its file. */
  readonly id: string;
  readonly spec: TaskSpec;
}

/** @param where "line 12" or "entry 12" */
export function badProblem(where: string, why: string): CliError {
  return new CliError(EXIT.usage, `${where}: ${why}`, ['nothing was submitted']);
}

/** One line of HumanEval.jsonl (github.com/openai/human-eval). */
export const HumanEvalLine = z.object({
  task_id: z.string().min(1),
  prompt: z.string().min(1),
  entry_point: z.string().min(1),
  canonical_solution: z.string(),
  test: z.string().min(1),
});
export type HumanEvalLine = z.infer<typeof HumanEvalLine>;

const INSTRUCTION = 'Complete this Python function. Answer with the whole program: its imports, its helpers and the function.';

/** The tests stay hidden. The prompt holds imports and helpers that tests call, so it comes before them as well. */
export function humanEvalProblem({ task_id, prompt, entry_point, canonical_solution, test }: HumanEvalLine): Problem {
  return {
    id: task_id,
    spec: create(TaskSpecSchema, {
      prompt: `${INSTRUCTION}\n\n${prompt}`,
      referenceSolution: prompt + canonical_solution,
      evaluator: {
        kind: {
          case: 'pythonTests',
          value: { entryPoint: entry_point, tests: `${test}\n\ncheck(${entry_point})`, setup: prompt, public: false },
        },
      },
    }),
  };
}

const tests = z.array(z.string().min(1)).min(1);
const taskId = z.union([z.number(), z.string()]);

/** One line of mbpp.jsonl (google-research/mbpp). `challenge_test_list` is not part of the standard score. */
const Original = z.object({
  task_id: taskId,
  text: z.string().min(1),
  code: z.string().min(1),
  test_list: tests,
  test_setup_code: z.string().default(''),
});
/** One entry of sanitized-mbpp.json. */
const Sanitized = z.object({
  task_id: taskId,
  prompt: z.string().min(1),
  code: z.string().min(1),
  test_list: tests,
  test_imports: z.array(z.string()).default([]),
});
export const MbppEntry = z.union([Original, Sanitized], {
  error: 'is neither an original entry (task_id, text, code, test_list) nor a sanitized one (task_id, prompt, code, test_list)',
});
export type MbppEntry = z.infer<typeof MbppEntry>;

/** Three times the default: one reference of the original needs about 6 s of CPU, and on a busy machine most of 20 s in all. */
const sandbox = { cpuTime: { seconds: 30n }, wallTime: { seconds: 60n } };

const names = (code: string, pattern: RegExp) => [...code.matchAll(pattern)].map((match) => match[1] ?? '');

/**
 * The function that the tests call and the reference defines: the first in the first test, since it may be called with
 * others inside. A function goes before a class, which the tests only use to make arguments.
 */
export function entryPointOf(code: string, testList: readonly string[]): string | null {
  const called = testList.flatMap((test) => names(test, /\b([A-Za-z_]\w*)\s*\(/g));
  const defined = [/^def\s+(\w+)/gm, /^\s*def\s+(\w+)/gm, /^(\w+)\s*=\s*lambda\b/gm, /^class\s+(\w+)/gm];
  for (const pattern of defined) {
    const here = new Set(names(code, pattern));
    const found = called.find((name) => here.has(name));
    if (found) return found;
  }
  return null;
}

/** The wording of the paper (Austin et al. 2021, section 2.1), which shows the tests. null where no entry point is found. */
export function mbppProblem(entry: MbppEntry): Problem | null {
  const text = 'text' in entry ? entry.text : entry.prompt;
  const setup = 'test_imports' in entry ? entry.test_imports.join('\n') : '';
  // In front of the tests and not in the setup: it may use classes that the answer defines.
  const before = 'test_setup_code' in entry && entry.test_setup_code ? `${entry.test_setup_code}\n` : '';
  const testList = entry.test_list.join('\n');
  const entryPoint = entryPointOf(entry.code, entry.test_list);
  if (!entryPoint) return null;
  return {
    id: `MBPP/${entry.task_id}`,
    spec: create(TaskSpecSchema, {
      prompt: `You are an expert Python programmer, and here is your task: ${text.trim()} Your code should pass these tests:\n\n${testList}\n`,
      referenceSolution: entry.code,
      limits: { sandbox },
      evaluator: { kind: { case: 'pythonTests', value: { entryPoint, tests: before + testList, setup, public: true } } },
    }),
  };
}

export const FORMATS = ['humaneval', 'mbpp', 'etude'] as const;
export type Format = (typeof FORMATS)[number];

const FILE_MAX_BYTES = 512 * 1024 * 1024;

interface Entry {
  readonly where: string;
  readonly json: unknown;
}

export interface ProblemFile {
  readonly problems: readonly Problem[];
  /** SHA-256 of the file, hexadecimal; a resumed run must find the same. */
  readonly sha256: string;
}

function unpack(path: string): { text: string; sha256: string } {
  const bytes = readBytes(path, FILE_MAX_BYTES);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  try {
    return { text: decodeUtf8(zipped ? gunzipSync(bytes, { maxOutputLength: FILE_MAX_BYTES }) : bytes, path), sha256 };
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.usage, `${path} can't be unpacked: ${(error as Error).message}`, [], { cause: error });
  }
}

function parseLine(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badProblem(where, `is not JSON: ${(error as Error).message}`);
  }
}

/** JSON lines, or one JSON array. Blank lines are skipped and counted. */
function entries(text: string): Entry[] {
  if (text.trimStart().startsWith('[')) {
    const list = parseLine(text, 'the file');
    return (list as unknown[]).map((json, i) => ({ where: `entry ${i + 1}`, json }));
  }
  return text.split('\n').flatMap((line, i) => (line.trim() ? [{ where: `line ${i + 1}`, json: parseLine(line, `line ${i + 1}`) }] : []));
}

function check<S extends z.ZodType>(schema: S, { where, json }: Entry): z.output<S> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw badProblem(where, `${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'is wrong'}`);
}

/** A TaskSpec as proto JSON with an `id` beside its fields; without one its place in the file is its id. */
function ownProblem(entry: Entry): Problem {
  const { id, ...spec } = check(z.looseObject({ id: z.union([z.string().min(1), z.number()]).optional() }), entry);
  try {
    return { id: String(id ?? entry.where.replace(' ', '-')), spec: fromJson(TaskSpecSchema, spec as JsonObject) };
  } catch (error) {
    throw badProblem(entry.where, (error as Error).message);
  }
}

const READERS: Readonly<Record<Format, (entry: Entry) => Problem>> = {
  humaneval: (entry) => humanEvalProblem(check(HumanEvalLine, entry)),
  mbpp: (entry) => {
    const problem = mbppProblem(check(MbppEntry, entry));
    if (!problem) throw badProblem(entry.where, 'test_list calls no function that code defines');
    return problem;
  },
  etude: ownProblem,
};

/** Parses the text of a problem file. @throws CliError with the line that is wrong */
export function parseProblems(format: Format, text: string): Problem[] {
  const seen = new Map<string, string>();
  const problems = entries(text).map((entry) => {
    const problem = READERS[format](entry);
    const before = seen.get(problem.id);
    if (before) throw badProblem(entry.where, `has the id ${problem.id} of ${before}`);
    seen.set(problem.id, entry.where);
    return problem;
  });
  if (problems.length === 0) throw new CliError(EXIT.usage, 'the file has no problems');
  return problems;
}

/** Reads a problem file, gzipped or not. Everything is checked before anything is submitted. @throws CliError */
export function readProblems(format: Format, path: string): ProblemFile {
  const { text, sha256 } = unpack(path);
  try {
    return { problems: parseProblems(format, text), sha256 };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(error.exit, `${path}, ${error.message}`, error.hint, { cause: error });
  }
}
