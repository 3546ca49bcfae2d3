import { basename } from 'node:path';
import { create, fromJson, type JsonObject, type JsonValue, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type Evaluator,
  EvaluatorSchema,
  FunctionCaseSchema,
  FunctionCasesSchema,
  IoCasesSchema,
  LimitsSchema,
  MemoryPolicySchema,
  Mode,
  type TaskFile,
  TaskFileSchema,
  type TaskSpec,
  TaskSpecSchema,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { TASK_FILES_MAX_BYTES } from '@etude/contracts/task';
import { CliError, EXIT } from '../errors.js';
import { readArgument, readBytes, readJson, readText, sizeOf } from '../files.js';

/** Flags of `tasks submit` that describe the task. */
export interface SpecOptions {
  readonly prompt?: string;
  readonly spec?: string;
  readonly file?: readonly string[];
  readonly evaluator?: string;
  readonly ioCases?: string;
  readonly functionCases?: string;
  readonly tests?: string;
  readonly setup?: string;
  readonly entryPoint?: string;
  readonly public?: boolean;
  readonly command?: string;
  readonly mode?: 'inference' | 'training';
  readonly agent?: string;
  readonly user?: string;
  readonly attempts?: number;
  readonly priority?: number;
  readonly label?: Readonly<Record<string, string>>;
  readonly memory?: MemoryUse;
  readonly reference?: string;
  readonly untrusted?: boolean;
}

/** `off`: recalls and writes nothing. `read`: writes nothing. `learn`: both, in training mode. */
export type MemoryUse = 'off' | 'read' | 'learn';
export const MEMORY_USES: readonly MemoryUse[] = ['off', 'read', 'learn'];

export function useMemory(spec: TaskSpec, use: MemoryUse): void {
  spec.memory ??= create(MemoryPolicySchema);
  spec.memory.off = use === 'off';
  spec.memory.readOnly = use !== 'learn';
}

export function setAttempts(spec: TaskSpec, attempts: number): void {
  spec.limits ??= create(LimitsSchema);
  spec.limits.attempts = attempts;
}

const fail = (message: string, hint: string[] = []) => new CliError(EXIT.usage, message, hint);

/** Proto JSON to a message. @throws CliError naming where it came from and what is wrong */
function parse<T>(source: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(
      EXIT.usage,
      `${source}: ${(error as Error).message}`,
      ['its fields are those of proto/etude/v1/tasks.proto, as proto JSON'],
      { cause: error },
    );
  }
}

/** A list of cases, or the whole message with its comparison and tolerance. */
const casesOf = (path: string): JsonValue => {
  const json = readJson(path) as JsonValue;
  return Array.isArray(json) ? { cases: json } : json;
};

/** @throws CliError with the place of the first case that is wrong, which the decoder of the whole does not tell */
function checkFunctionCases(path: string, json: JsonValue): void {
  const { cases } = json as { readonly cases?: JsonValue };
  if (!Array.isArray(cases)) return;
  for (const [index, one] of cases.entries()) {
    const at = `${path}: cases[${index}]`;
    if (!isObject(one)) throw fail(`${at} must be an object with args, kwargs, expected and public`);
    const { args = null, kwargs = null } = one;
    if (args !== null && !Array.isArray(args)) throw fail(`${at}.args must be a list, with one entry for each argument, such as [3]`);
    if (kwargs !== null && !isObject(kwargs))
      throw fail(`${at}.kwargs must be an object, with one entry for each argument, such as {"n": 3}`);
    parse(at, () => fromJson(FunctionCaseSchema, one));
  }
}

const isObject = (json: JsonValue): json is JsonObject => typeof json === 'object' && json !== null && !Array.isArray(json);

function functionCases(path: string, entryPoint: string | undefined): Evaluator['kind'] {
  const json = parse(path, () => casesOf(path));
  checkFunctionCases(path, json);
  const value = parse(path, () => fromJson(FunctionCasesSchema, json));
  if (entryPoint) value.entryPoint = entryPoint;
  if (!value.entryPoint) throw fail('--function-cases needs --entry-point NAME, the function to call');
  return { case: 'functionCases', value };
}

function pythonTests(options: SpecOptions): MessageInitShape<typeof EvaluatorSchema>['kind'] {
  const { tests = '', setup, entryPoint } = options;
  if (!entryPoint) throw fail('--tests needs --entry-point NAME, the function that the answer must define');
  const value = { entryPoint, tests: readText(tests), setup: setup ? readText(setup) : '', public: options.public === true };
  return { case: 'pythonTests', value };
}

function evaluatorOf(options: SpecOptions): MessageInitShape<typeof EvaluatorSchema> | undefined {
  const flags = (['evaluator', 'ioCases', 'functionCases', 'tests', 'command'] as const).filter((flag) => options[flag] !== undefined);
  if (flags.length > 1)
    throw fail('a task has one evaluator: give only one of --evaluator, --io-cases, --function-cases, --tests, --command');
  if (options.evaluator) {
    const path = options.evaluator;
    return parse(path, () => fromJson(EvaluatorSchema, readJson(path) as JsonValue));
  }
  if (options.ioCases) {
    const path = options.ioCases;
    return { kind: { case: 'ioCases', value: parse(path, () => fromJson(IoCasesSchema, casesOf(path))) } };
  }
  if (options.functionCases) return { kind: functionCases(options.functionCases, options.entryPoint) };
  if (options.tests) return { kind: pythonTests(options) };
  if (options.command) return { kind: { case: 'command', value: { command: options.command } } };
  return undefined;
}

/** `PATH`, or `NAME=PATH` to place it under another name. Sizes are added up before anything is read. */
function filesOf(flags: readonly string[]): TaskFile[] {
  const files = flags.map((flag) => {
    const at = flag.indexOf('=');
    return at > 0 ? { path: flag.slice(0, at), source: flag.slice(at + 1) } : { path: basename(flag), source: flag };
  });
  const bytes = files.reduce((sum, { source }) => sum + sizeOf(source), 0);
  if (bytes > TASK_FILES_MAX_BYTES) {
    throw fail(`the files have ${(bytes / 1024 / 1024).toFixed(1)} MiB together; a task takes ${TASK_FILES_MAX_BYTES / 1024 / 1024} MiB`, [
      'put large data where the code can make or shrink it, and send what the task needs',
    ]);
  }
  return files.map(({ path, source }) => create(TaskFileSchema, { path, content: readBytes(source, TASK_FILES_MAX_BYTES) }));
}

const MODES = { inference: Mode.INFERENCE, training: Mode.TRAINING } as const;

/** What the flags say over what `--spec` says. Limits and fields are checked by the gateway. */
export async function taskSpec(options: SpecOptions): Promise<TaskSpec> {
  const path = options.spec;
  const spec = path ? parse(path, () => fromJson(TaskSpecSchema, readJson(path) as JsonValue)) : create(TaskSpecSchema);
  const evaluator = evaluatorOf(options) ?? (spec.evaluator ? undefined : { kind: { case: 'none' as const, value: {} } });
  const mode = options.mode ?? (options.memory === 'learn' ? 'training' : undefined);
  if (options.prompt !== undefined) spec.prompt = await readArgument(options.prompt);
  if (evaluator) spec.evaluator = create(EvaluatorSchema, evaluator);
  if (mode) spec.mode = MODES[mode];
  if (options.agent) spec.agent = options.agent;
  if (options.user) spec.user = options.user;
  if (options.priority !== undefined) spec.priority = options.priority;
  if (options.attempts !== undefined) setAttempts(spec, options.attempts);
  if (options.memory) useMemory(spec, options.memory);
  if (options.untrusted) spec.untrusted = true;
  if (options.reference) spec.referenceSolution = readText(options.reference);
  spec.files.push(...filesOf(options.file ?? []));
  Object.assign(spec.labels, options.label);
  return spec;
}
