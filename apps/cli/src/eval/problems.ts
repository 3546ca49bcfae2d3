import { gunzipSync } from 'node:zlib';
import { create, fromJson, type JsonObject, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type TaskSpec, TaskSpecSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { z } from 'zod';
import { CliError, EXIT } from '../errors.js';
import { decodeUtf8, readBytes } from '../files.js';

export interface Problem {
  /** Id in the data set, such as "HumanEval/7". Unique in its file. */
  readonly id: string;
  readonly spec: TaskSpec;
}

type Spec = Exclude<MessageInitShape<typeof TaskSpecSchema>, { readonly $typeName: string }>;

const problem = (id: string, spec: Spec): Problem => ({ id, spec: create(TaskSpecSchema, spec) });

/** One line of HumanEval.jsonl (github.com/openai/human-eval). */
const HumanEval = z.object({
  task_id: z.string().min(1),
  prompt: z.string().min(1),
  entry_point: z.string().min(1),
  canonical_solution: z.string(),
  test: z.string().min(1),
});

const INSTRUCTION = 'Complete this Python function. Answer with the whole program: its imports, its helpers and the function.';

/** Hides the tests. Their setup is the prompt, which holds the imports and helpers that the tests call. */
function humanEvalProblem({ task_id, prompt, entry_point, canonical_solution, test }: z.infer<typeof HumanEval>): Problem {
  const value = { entryPoint: entry_point, tests: `${test}\n\ncheck(${entry_point})`, setup: prompt, public: false };
  return problem(task_id, {
    prompt: `${INSTRUCTION}\n\n${prompt}`,
    referenceSolution: prompt + canonical_solution,
    evaluator: { kind: { case: 'pythonTests', value } },
  });
}

/** An entry of mbpp.jsonl (google-research/mbpp), with `text`, or of sanitized-mbpp.json, with `prompt`. */
const Mbpp = z
  .object({
    task_id: z.union([z.number(), z.string()]),
    text: z.string().default(''),
    prompt: z.string().default(''),
    code: z.string().min(1),
    test_list: z.array(z.string().min(1)).min(1),
    test_setup_code: z.string().default(''),
    test_imports: z.array(z.string()).default([]),
  })
  .refine(({ text, prompt }) => text !== '' || prompt !== '', { error: 'has neither text nor prompt' });

/** Three times the default limits. One reference solution in mbpp.jsonl takes about 6 s of CPU and, on a busy machine, nearly 20 s of wall time. */
const sandbox = { cpuTime: { seconds: 30n }, wallTime: { seconds: 60n } };

const names = (code: string, pattern: RegExp) => [...code.matchAll(pattern)].map((match) => match[1] ?? '');

/**
 * The first name that the tests call and the reference solution defines. Nested calls come later in the text, so they are not first.
 * Functions are preferred to classes, because tests use classes only to build arguments. null if no such name is found.
 */
function entryPointOf(code: string, testList: readonly string[]): string | null {
  const called = testList.flatMap((test) => names(test, /\b([A-Za-z_]\w*)\s*\(/g));
  for (const pattern of [/^def\s+(\w+)/gm, /^\s*def\s+(\w+)/gm, /^(\w+)\s*=\s*lambda\b/gm, /^class\s+(\w+)/gm]) {
    const here = new Set(names(code, pattern));
    const found = called.find((name) => here.has(name));
    if (found) return found;
  }
  return null;
}

/** Uses the prompt of the paper (Austin et al. 2021, section 2.1), which shows the tests. @throws Error if no entry point is found */
function mbppProblem({ task_id, text, prompt, code, test_list, test_setup_code, test_imports }: z.infer<typeof Mbpp>): Problem {
  const shown = test_list.join('\n');
  const entryPoint = entryPointOf(code, test_list);
  if (!entryPoint) throw new Error('the asserts in "test_list" call no function or class that "code" defines');
  // The setup code goes before the tests, because it may use classes that the answer defines.
  const tests = test_setup_code ? `${test_setup_code}\n${shown}` : shown;
  const value = { entryPoint, tests, setup: test_imports.join('\n'), public: true };
  return problem(`MBPP/${task_id}`, {
    prompt: `You are an expert Python programmer, and here is your task: ${(text || prompt).trim()} Your code should pass these tests:\n\n${shown}\n`,
    referenceSolution: code,
    limits: { sandbox },
    evaluator: { kind: { case: 'pythonTests', value } },
  });
}

/** A TaskSpec as proto JSON, with an additional field `id`. */
const Own = z.looseObject({ id: z.union([z.string().min(1), z.number()]) });

export const LINE_FORMATS = ['humaneval', 'mbpp', 'etude'] as const;
type Format = (typeof LINE_FORMATS)[number];

/** @throws Error with the field that is wrong */
export const specOf = (json: object): TaskSpec => fromJson(TaskSpecSchema, json as JsonObject);

export const READERS: Readonly<Record<Format, (entry: unknown) => Problem>> = {
  humaneval: (entry) => humanEvalProblem(HumanEval.parse(entry)),
  mbpp: (entry) => mbppProblem(Mbpp.parse(entry)),
  etude: (entry) => {
    const { id, ...spec } = Own.parse(entry);
    return { id: String(id), spec: specOf(spec) };
  },
};

export const FILE_MAX_BYTES = 512 * 1024 * 1024;

/** The text of a file, gzipped or not. @throws CliError */
export function unpack(bytes: Buffer, path: string): string {
  const zipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  try {
    return decodeUtf8(zipped ? gunzipSync(bytes, { maxOutputLength: FILE_MAX_BYTES }) : bytes, path);
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.usage, `${path} can't be unpacked: ${(error as Error).message}`, [], { cause: error });
  }
}

/** Entries of JSON lines or of one JSON array, each with its place. Blank lines are skipped, but count as lines. */
function entriesOf(text: string): ReadonlyArray<{ readonly where: string; readonly read: () => unknown }> {
  if (!text.trimStart().startsWith('['))
    return text
      .split('\n')
      .flatMap((line, i) => (line.trim() ? [{ where: `line ${i + 1}`, read: () => JSON.parse(line) as unknown }] : []));
  return (JSON.parse(text) as unknown[]).map((json, i) => ({ where: `entry ${i + 1}`, read: () => json }));
}

const reasonOf = (error: unknown) => {
  const [issue] = error instanceof z.ZodError ? error.issues : [];
  return issue ? `${issue.path.join('.') || 'the entry'}: ${issue.message}` : (error as Error).message;
};

/** Parses each line or entry with `readEntry`; ids must be unique. @throws CliError with the line that is wrong */
export function parseEntries<P extends { readonly id: string }>(readEntry: (entry: unknown) => P, text: string, path = 'the file'): P[] {
  const seen = new Map<string, string>();
  const read = (entry: unknown, where: string) => {
    const found = readEntry(entry);
    const before = seen.get(found.id);
    if (before) throw new Error(`repeats the id ${found.id} of ${before}`);
    seen.set(found.id, where);
    return found;
  };
  const problems = parseLines(read, text, path, ['no problem was submitted']);
  if (problems.length === 0) throw new CliError(EXIT.usage, `${path} has no problems`);
  return problems;
}

/** Parses JSON lines or one JSON array. @throws CliError with the line and the field that is wrong */
export function parseLines<T>(
  readLine: (entry: unknown, where: string) => T,
  text: string,
  path: string,
  hint: readonly string[] = [],
): T[] {
  return entriesOf(text).map(({ where, read }) => {
    try {
      return readLine(read(), where);
    } catch (error) {
      throw new CliError(EXIT.usage, `${path}, ${where}: ${reasonOf(error)}`, hint, { cause: error });
    }
  });
}

export function readEntries<P extends Problem>(readEntry: (entry: unknown) => P, path: string): P[] {
  return parseEntries(readEntry, unpack(readBytes(path, FILE_MAX_BYTES), path), path);
}

/** A problem that isn't submitted, because it can't be judged exactly. */
export interface RefusedProblem {
  readonly id: string;
  readonly refused: string;
}

export interface ProgramCase {
  readonly stdin: string;
  readonly expectedStdout: string;
  readonly public: boolean;
}

/** A task may have 16 MiB in all. */
const SPEC_MAX_BYTES = 15 * 1024 * 1024;

/** The problem, or the reason why it can't be judged. @param specJson returns a TaskSpec as proto JSON; throws an Error with the reason */
export function judgedProblem(id: string, specJson: () => object): Problem | RefusedProblem {
  try {
    const spec = specOf(specJson());
    const size = toBinary(TaskSpecSchema, spec).length;
    if (size > SPEC_MAX_BYTES) throw new Error(`its tests have ${Math.ceil(size / 1024 / 1024)} MiB; a task may have 15 MiB`);
    return { id, spec };
  } catch (error) {
    return { id, refused: (error as Error).message };
  }
}

const OUTPUT_KIB = { usual: 256, max: 16_384 };
const WALL_SECONDS_MIN = 20;

/** Limits that a problem asks for. For a limit that is unset or 0, Etude's default applies. */
interface ProblemLimits {
  /** CPU time. */
  readonly seconds?: number | null | undefined;
  readonly memoryMiB?: number | null | undefined;
}

/** The output limit has room for the longest expected output. @throws Error if that is longer than a sandbox keeps */
export function programLimits(cases: readonly ProgramCase[], { seconds, memoryMiB }: ProblemLimits): object {
  const kib = Math.max(0, ...cases.map(({ expectedStdout }) => Buffer.byteLength(expectedStdout))) / 1024;
  if (kib > OUTPUT_KIB.max) throw new Error(`an expected output has ${Math.ceil(kib)} KiB; at most ${OUTPUT_KIB.max} are compared`);
  const outputKib = Math.min(OUTPUT_KIB.max, Math.max(OUTPUT_KIB.usual, Math.ceil(2 * kib)));
  const cpu = Math.min(600, Math.max(0.01, seconds ?? 0));
  const time = seconds ? { cpuTime: `${cpu}s`, wallTime: `${Math.max(WALL_SECONDS_MIN, 2 * cpu)}s` } : {};
  const memory = memoryMiB ? { memoryMib: Math.min(65_536, Math.max(16, Math.ceil(memoryMiB))) } : {};
  return { sandbox: { ...time, ...memory, outputKib } };
}
