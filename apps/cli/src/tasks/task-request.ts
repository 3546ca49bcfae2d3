import { isAbsolute, normalize } from 'node:path';
import { create, type DescMessage, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import {
  EvaluatorSchema,
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
import { TASK_FILES_MAX_BYTES, TASK_STRATEGIES } from '@etude/contracts/task';
import { fieldsOf, type Flag, type Flags } from '../command.js';
import { CliError, EXIT } from '../errors.js';
import { messageOf, readBytes, readJson, readText } from '../files.js';
import { integer, repeated } from '../options.js';

/** `off`: neither recalls nor writes. `read`: only recalls. `learn`: recalls and writes, in training mode. */
export type MemoryUse = 'off' | 'read' | 'learn';
export const MEMORY_USES: readonly MemoryUse[] = ['off', 'read', 'learn'];

export const STRATEGY: Flag = { help: "how the task is worked on (default: the agent's setting)", choices: TASK_STRATEGIES };

/** Flags that are fields of a TaskSpec. */
const FIELDS: Flags = {
  '--prompt <text>': { help: 'the task, as text; @FILE reads a file, - reads stdin', reads: true },
  '--mode <mode>': 'training: also learn reflections and skills from the attempts',
  '--agent <name>': 'agent that owns the learned facts and skills (default: default)',
  '--user <name>': 'end user within the tenant',
  '--strategy <strategy>': STRATEGY,
  '--priority <n>': { help: '0 to 9; tasks with larger numbers start sooner', parse: integer(0, 9) },
  '--untrusted': 'the task is not trusted: skills learned from it wait for review',
};

export const SPEC_FLAGS: Flags = {
  ...FIELDS,
  '--spec <file>': 'a whole TaskSpec as proto JSON; other flags override its fields',
  '--file <path>': {
    help: 'copy a file into the working directory, at the same relative path, or as NAME=PATH; repeatable, 8 MiB in all',
    parse: repeated,
  },
  '--evaluator <file>': 'an Evaluator as proto JSON',
  '--io-cases <file>': 'JSON list of {stdin, expectedStdout, public}',
  '--function-cases <file>': 'JSON list of {args, kwargs, expected, public}; needs --entry-point',
  '--tests <file>': 'Python asserts; needs --entry-point',
  '--setup <file>': 'trusted Python code that runs before answer and tests',
  '--entry-point <name>': 'the function that the answer must define',
  '--public': 'show the tests to the model',
  '--command <command>': 'command that exits with 0 if the answer in solution.py is right',
  '--attempts <n>': { help: 'most attempts (default: 4)', parse: integer(1, 100) },
  '--label <key=value>': 'label of the task; repeatable',
  '--memory <use>': { help: 'off: no memory; read: recall only; learn: training with memory', choices: MEMORY_USES },
  '--reference <file>': 'a right answer; only the reflection of a training run sees it',
};

type TextFlag = 'spec' | 'evaluator' | 'ioCases' | 'functionCases' | 'tests' | 'setup' | 'entryPoint' | 'command' | 'reference';

/** Values of SPEC_FLAGS, except for those that only `fieldsOf` reads. */
export interface SpecOptions extends Readonly<Partial<Record<TextFlag, string>>> {
  readonly file?: readonly string[];
  readonly public?: boolean;
  readonly attempts?: number;
  readonly label?: Readonly<Record<string, string>>;
  readonly memory?: MemoryUse;
}

export function useMemory(spec: TaskSpec, use: MemoryUse): void {
  spec.memory ??= create(MemoryPolicySchema);
  spec.memory.off = use === 'off';
  spec.memory.readOnly = use !== 'learn';
}

export function setAttempts(spec: TaskSpec, attempts: number): void {
  spec.limits ??= create(LimitsSchema);
  spec.limits.attempts = attempts;
}

function readMessage<Desc extends DescMessage>(type: Desc, path: string): MessageShape<Desc> {
  const json = readJson(path);
  // A bare list of cases means a message with the default comparison and tolerance.
  const whole = Array.isArray(json) ? { cases: json } : json;
  return messageOf(type, whole, path, ['proto/etude/v1/tasks.proto lists the fields; write them as proto JSON']);
}

type Kind = MessageInitShape<typeof EvaluatorSchema>['kind'];

function entryPointOf(flag: string, entryPoint: string | undefined): string {
  if (entryPoint) return entryPoint;
  throw new CliError(EXIT.usage, `${flag} needs --entry-point NAME, the function that the answer must define`);
}

const EVALUATORS: Readonly<Record<string, (value: string, options: SpecOptions) => Kind>> = {
  evaluator: (path) => readMessage(EvaluatorSchema, path).kind,
  ioCases: (path) => ({ case: 'ioCases', value: readMessage(IoCasesSchema, path) }),
  functionCases: (path, { entryPoint }) => {
    const value = readMessage(FunctionCasesSchema, path);
    value.entryPoint = entryPointOf('--function-cases', entryPoint ?? value.entryPoint);
    return { case: 'functionCases', value };
  },
  tests: (path, options) => {
    const entryPoint = entryPointOf('--tests', options.entryPoint);
    const setup = options.setup ? readText(options.setup) : '';
    return { case: 'pythonTests', value: { entryPoint, tests: readText(path), setup, public: options.public === true } };
  },
  command: (command) => ({ case: 'command', value: { command } }),
};

function evaluatorOf(options: SpecOptions): Kind | null {
  const given = Object.entries(EVALUATORS).flatMap(([flag, read]) => {
    const value = (options as Readonly<Record<string, unknown>>)[flag];
    return typeof value === 'string' ? [() => read(value, options)] : [];
  });
  if (given.length > 1) {
    const message = 'a task has one evaluator; pass only one of --evaluator, --io-cases, --function-cases, --tests, --command';
    throw new CliError(EXIT.usage, message);
  }
  return given[0]?.() ?? null;
}

function fileOf(flag: string): TaskFile {
  const at = flag.indexOf('=');
  const [path, source] = at > 0 ? [flag.slice(0, at), flag.slice(at + 1)] : [relativePath(flag), flag];
  return create(TaskFileSchema, { path, content: readBytes(source, TASK_FILES_MAX_BYTES) });
}

function relativePath(file: string): string {
  const path = normalize(file);
  if (!isAbsolute(path) && !path.split('/').includes('..')) return path;
  throw new CliError(EXIT.usage, `--file ${file} is not below the current folder; name its place in the working directory: NAME=${file}`);
}

/** The TaskSpec of `--spec`, overridden by the other flags. The gateway checks limits and fields. */
export async function taskSpec(options: SpecOptions & Readonly<Partial<Record<keyof TaskSpec, unknown>>>): Promise<TaskSpec> {
  const spec = options.spec ? readMessage(TaskSpecSchema, options.spec) : create(TaskSpecSchema);
  const evaluator = evaluatorOf(options) ?? (spec.evaluator ? null : { case: 'none' as const, value: {} });
  if (options.memory === 'learn') spec.mode = Mode.TRAINING;
  Object.assign(spec, await fieldsOf(TaskSpecSchema, FIELDS, options));
  if (evaluator) spec.evaluator = create(EvaluatorSchema, { kind: evaluator });
  if (options.attempts !== undefined) setAttempts(spec, options.attempts);
  if (options.memory) useMemory(spec, options.memory);
  if (options.reference) spec.referenceSolution = readText(options.reference);
  spec.files.push(...(options.file ?? []).map(fileOf));
  Object.assign(spec.labels, options.label);
  return spec;
}
