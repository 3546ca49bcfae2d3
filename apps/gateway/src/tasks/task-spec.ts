import { toJson } from '@bufbuild/protobuf';
import { type ListValue, ListValueSchema, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import {
  Comparison,
  type Evaluator as EvaluatorMessage,
  type FunctionCase,
  type Limits as LimitsMessage,
  type MemoryPolicy,
  Mode,
  type TaskFile,
  type TaskSpec as TaskSpecMessage,
} from '@etude/contracts/gen/etude/v1/tasks_pb';
import { sandboxLimitsOf } from '@etude/contracts/sandbox-wire';
import { TASK_FILES_MAX_BYTES, TaskSpec } from '@etude/contracts/task';
import { millisecondsOf } from '../wire/time.js';
import {
  invalid,
  invalidField,
  joinPath,
  refuseAny,
  SANDBOX_LIMIT_NAMES,
  snakeCase,
  type Violation,
  violationsOf,
} from '../wire/validation.js';

export const LABELS_MAX = 64;

/** Zero and empty mean that the default of the contract applies. */
const set = <T extends number | bigint | string>(value: T) => (value === 0 || value === 0n || value === '' ? undefined : value);
const count = (value: bigint) => (value === 0n ? undefined : Number(value));

const COMPARISONS = new Map<number, string | undefined>([
  [Comparison.UNSPECIFIED, undefined],
  [Comparison.WHITESPACE, 'whitespace'],
  [Comparison.EXACT, 'exact'],
  [Comparison.NUMERIC, 'numeric'],
]);
const MODES = new Map<number, string | undefined>([
  [Mode.UNSPECIFIED, undefined],
  [Mode.INFERENCE, 'inference'],
  [Mode.TRAINING, 'training'],
]);

/** A number that the enum does not have goes on as text, which the contract then refuses by name. */
const enumOf = (names: ReadonlyMap<number, string | undefined>, value: number) =>
  names.has(value) ? names.get(value) : `unknown value ${value}`;

/** `instead` parses, so that one mistake is reported once. */
function json(read: () => unknown, field: string, found: Violation[], instead: unknown = null): unknown {
  try {
    return read();
  } catch {
    found.push({ field, description: 'must be JSON: every value set, numbers finite' });
    return instead;
  }
}

function expectedOf(value: Value | undefined, field: string, found: Violation[]): unknown {
  if (value) return json(() => toJson(ValueSchema, value), field, found);
  found.push({ field, description: 'is required; write null as null_value' });
  return null;
}

const listOf = (list: ListValue | undefined) => (list ? toJson(ListValueSchema, list) : []);

function functionCase(testCase: FunctionCase, path: string, found: Violation[]) {
  return {
    args: json(() => listOf(testCase.args), `${path}.args`, found, []),
    kwargs: testCase.kwargs ?? {},
    expected: expectedOf(testCase.expected, `${path}.expected`, found),
    public: testCase.public,
  };
}

function evaluatorOf(evaluator: EvaluatorMessage | undefined, found: Violation[]): object {
  const kind = evaluator?.kind;
  switch (kind?.case) {
    case 'ioCases': {
      const { cases, comparison, tolerance } = kind.value;
      const mapped = cases.map(({ stdin, expectedStdout, public: shown }) => ({ stdin, expectedStdout, public: shown }));
      return { kind: 'io_cases', cases: mapped, comparison: enumOf(COMPARISONS, comparison), tolerance: set(tolerance) };
    }
    case 'functionCases': {
      const { entryPoint, cases, tolerance } = kind.value;
      const at = 'spec.evaluator.function_cases.cases';
      return {
        kind: 'function_cases',
        entryPoint,
        cases: cases.map((one, index) => functionCase(one, joinPath(at, index), found)),
        tolerance: set(tolerance),
      };
    }
    case 'pythonTests': {
      const { entryPoint, tests, setup, public: shown } = kind.value;
      return { kind: 'python_tests', entryPoint, tests, setup, public: shown };
    }
    case 'command': {
      const { command, expectedExitCode, expectedStdout, comparison, answerPath } = kind.value;
      const at = 'spec.evaluator.command';
      if (command.includes('\0')) found.push({ field: `${at}.command`, description: 'must not hold a NUL character; no shell takes one' });
      const problem = answerPath === '' ? null : pathProblem(answerPath);
      if (problem) found.push({ field: `${at}.answer_path`, description: problem });
      return {
        kind: 'command',
        command,
        expectedExitCode,
        expectedStdout,
        comparison: enumOf(COMPARISONS, comparison),
        answerPath: set(answerPath),
      };
    }
    case 'none':
      return { kind: 'none' };
    default:
      found.push({
        field: 'spec.evaluator',
        description: 'is required; set one of io_cases, function_cases, python_tests, command, or none where nothing is to be judged',
      });
      return { kind: 'none' };
  }
}

function limitsOf(limits: LimitsMessage | undefined): object {
  if (!limits) return {};
  return {
    attemptsMax: set(limits.attempts),
    stepsMax: set(limits.steps),
    wallMs: millisecondsOf(limits.wallTime),
    modelTokensMax: count(limits.modelTokens),
    costUsdMax: set(limits.costUsd),
    sandbox: sandboxLimitsOf(limits.sandbox),
  };
}

function memoryOf(policy: MemoryPolicy | undefined): object {
  if (!policy) return {};
  return {
    off: policy.off,
    readOnly: policy.readOnly,
    recallCount: set(policy.recallCount),
    preferSkills: policy.preferSkills,
    layers: policy.layers.length > 0 ? [...new Set(policy.layers)] : undefined,
  };
}

/** Names of the contract that the proto calls otherwise. */
const PROTO_NAMES: Readonly<Record<string, string>> = {
  attemptsMax: 'attempts',
  stepsMax: 'steps',
  wallMs: 'wall_time',
  modelTokensMax: 'model_tokens',
  costUsdMax: 'cost_usd',
  ...SANDBOX_LIMIT_NAMES,
  contentBase64: 'content',
};

function protoNames(kind: string) {
  return (path: readonly PropertyKey[], index: number): string | null => {
    const key = String(path[index]);
    if (path[0] === 'labels' && index === 1) return JSON.stringify(key);
    if (path[0] === 'evaluator' && index === 0 && path.length > 1) return `evaluator.${kind}`;
    if (path[0] === 'evaluator' && key === 'kind') return null;
    return PROTO_NAMES[key] ?? snakeCase(key);
  };
}

function labelViolations(labels: Readonly<Record<string, string>>): readonly Violation[] {
  const total = Object.keys(labels).length;
  return total > LABELS_MAX
    ? [{ field: 'spec.labels', description: `must not have more than ${LABELS_MAX} entries; it has ${total}` }]
    : [];
}

/**
 * What a caller sent, as the contract has it, with every default filled in.
 *
 * @throws EtudeError INVALID_ARGUMENT with one violation per wrong field, each at the path that the caller wrote
 */
export function taskSpecOf(message: TaskSpecMessage | undefined): TaskSpec {
  if (!message) throw invalidField('spec', 'is required');
  // Before anything is copied out of them.
  refuseAny(fileViolations(message.files));
  const found: Violation[] = [...labelViolations(message.labels)];
  const evaluator = evaluatorOf(message.evaluator, found);
  const parsed = TaskSpec.safeParse({
    agent: set(message.agent),
    user: set(message.user),
    prompt: message.prompt,
    files: message.files.map(({ path, content }) => ({ path, contentBase64: Buffer.from(content).toString('base64') })),
    mode: enumOf(MODES, message.mode),
    evaluator,
    referenceSolution: set(message.referenceSolution),
    limits: limitsOf(message.limits),
    strategy: set(message.strategy),
    memory: memoryOf(message.memory),
    priority: message.priority,
    labels: message.labels,
    ...(message.untrusted ? { untrusted: true } : {}),
  });
  const kind = snakeCase(message.evaluator?.kind.case ?? '');
  if (parsed.error) found.push(...violationsOf(parsed.error, TaskSpec, 'spec', protoNames(kind)));
  else found.push(...diskViolations(message.files, parsed.data.limits.sandbox.diskMiB));
  if (parsed.success && found.length === 0) return parsed.data;
  throw invalid(found);
}

export const FILES_MAX = 100;
const PATH_MAX_CHARS = 512;
/** Of one name, as Linux has it. */
const NAME_MAX_BYTES = 255;
/** A file takes whole blocks of the sandbox's disk. */
const BLOCK_BYTES = 4_096;
const MIB = 1_048_576;

const CONTROL_CHARACTER = /\p{Cc}/u;

/** What is wrong with a path that is to lie inside the working directory; null where nothing is. */
export function pathProblem(path: string): string | null {
  if (path === '') return 'must not be empty';
  if (path.length > PATH_MAX_CHARS) return `must not be longer than ${PATH_MAX_CHARS} characters`;
  if (path.startsWith('/')) return 'must be relative to the working directory, without a leading "/"';
  if (CONTROL_CHARACTER.test(path) || path.includes('\\')) return 'must not hold control characters or "\\"';
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return 'must not have empty, "." or ".." parts';
  return parts.some((part) => Buffer.byteLength(part) > NAME_MAX_BYTES) ? `must not have a part longer than ${NAME_MAX_BYTES} bytes` : null;
}

/** Files that leave no room for themselves would be held against every answer. */
export function diskViolations(files: readonly TaskFile[], diskMiB: number): readonly Violation[] {
  const bytes = files.reduce((sum, { content }) => sum + Math.ceil(content.byteLength / BLOCK_BYTES) * BLOCK_BYTES, 0);
  if (bytes < diskMiB * MIB) return [];
  return [
    { field: 'spec.limits.sandbox.disk_mib', description: `must be more than what spec.files take, ${bytes} bytes; it is ${diskMiB}` },
  ];
}

function pathViolations(files: readonly TaskFile[]): Violation[] {
  const found: Violation[] = [];
  const seen = new Set<string>();
  for (const [index, { path }] of files.entries()) {
    const field = `spec.files[${index}].path`;
    const problem = pathProblem(path) ?? (seen.has(path) ? `is there twice: ${JSON.stringify(path)}` : null);
    if (problem) found.push({ field, description: problem });
    seen.add(path);
  }
  for (const [index, { path }] of files.entries()) {
    const parent = path
      .split('/')
      .map((_, at, parts) => parts.slice(0, at).join('/'))
      .find((folder) => folder !== '' && seen.has(folder));
    if (parent !== undefined)
      found.push({ field: `spec.files[${index}].path`, description: `lies in ${JSON.stringify(parent)}, which is a file` });
  }
  return found;
}

/** Sizes first, since looking at a million paths is work that a caller should not be able to ask for. */
export function fileViolations(files: readonly TaskFile[]): readonly Violation[] {
  if (files.length > FILES_MAX)
    return [{ field: 'spec.files', description: `must not have more than ${FILES_MAX} entries; it has ${files.length}` }];
  const bytes = files.reduce((sum, { content }) => sum + content.byteLength, 0);
  if (bytes > TASK_FILES_MAX_BYTES) {
    return [{ field: 'spec.files', description: `must not hold more than ${TASK_FILES_MAX_BYTES} bytes together; they hold ${bytes}` }];
  }
  return pathViolations(files);
}
