import { z } from 'zod';
import { AgentId, TenantId, UserId } from './ids.js';
import { Json } from './json.js';
import { SandboxFile, SandboxLimits } from './sandbox.js';

export const TASK_FILES_MAX_BYTES = 8 * 1024 * 1024;
const PROMPT_MAX_CHARS = 200_000;

export const Comparison = z.enum(['whitespace', 'exact', 'numeric']);
export type Comparison = z.infer<typeof Comparison>;

/** A text with a visible character. It isn't trimmed, since code may start with indentation. */
const notBlank = (otherwise: string) => z.string().regex(/\S/, otherwise);

const IoCase = z.strictObject({ stdin: z.string(), expectedStdout: z.string(), public: z.boolean().default(false) });
const FunctionCase = z.strictObject({
  args: z.array(Json).default([]),
  kwargs: z.record(z.string(), Json).default({}),
  expected: Json,
  public: z.boolean().default(false),
});
const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);
const identifier = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a Python identifier')
  .refine((name) => !KEYWORDS.has(name), 'must not be a Python keyword');

/** Linux's limit for one part of a path. */
const NAME_MAX_BYTES = 255;
const partsOf = (path: string) => path.split('/');
const FilePath = z
  .string()
  .min(1)
  .max(512)
  .refine((path) => !path.startsWith('/'), 'must be relative to the working directory, without a leading "/"')
  .refine((path) => !/[\p{Cc}\\]/u.test(path), 'must not hold control characters or "\\"')
  .refine((path) => !partsOf(path).some((part) => ['', '.', '..'].includes(part)), 'must not have empty, "." or ".." parts')
  .refine(
    (path) => partsOf(path).every((part) => new TextEncoder().encode(part).length <= NAME_MAX_BYTES),
    `must not have a part longer than ${NAME_MAX_BYTES} bytes`,
  );

const Files = z
  .array(SandboxFile.extend({ path: FilePath }))
  .max(100)
  .superRefine((files, context) => {
    const paths = files.map(({ path }) => path);
    for (const [index, path] of paths.entries()) {
      const folder = paths.find((other) => path.startsWith(`${other}/`));
      if (paths.indexOf(path) < index) context.addIssue({ code: 'custom', path: [index, 'path'], message: `is given twice: ${path}` });
      if (folder !== undefined)
        context.addIssue({ code: 'custom', path: [index, 'path'], message: `is below ${JSON.stringify(folder)}, which is a file` });
    }
  });

export const LABELS_MAX = 64;
const Labels = z
  .record(z.string().min(1).max(63), z.string().max(255))
  .refine((labels) => Object.keys(labels).length <= LABELS_MAX, `must not have more than ${LABELS_MAX} entries`);

export const Evaluator = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('io_cases'),
    cases: z.array(IoCase).min(1, 'needs at least one case').max(1_000),
    comparison: Comparison.default('whitespace'),
    tolerance: z.number().min(0).max(1).default(1e-6),
  }),
  z.strictObject({
    kind: z.literal('function_cases'),
    entryPoint: identifier,
    cases: z.array(FunctionCase).min(1, 'needs at least one case').max(1_000),
    tolerance: z.number().min(0).max(1).default(1e-9),
  }),
  z.strictObject({
    kind: z.literal('python_tests'),
    entryPoint: identifier,
    tests: notBlank('needs test code').max(1_000_000),
    setup: z.string().max(1_000_000).default(''),
    public: z.boolean().default(false),
  }),
  z.strictObject({
    kind: z.literal('command'),
    command: notBlank('needs a command')
      .max(20_000)
      .refine((line) => !line.includes('\0'), 'must not contain a NUL character'),
    expectedExitCode: z.number().int().min(0).max(255).default(0),
    expectedStdout: z.string().optional(),
    comparison: Comparison.default('whitespace'),
    answerPath: FilePath.default('solution.py'),
  }),
  z.strictObject({ kind: z.literal('none') }),
  /** An evaluator that only the domain knows, with its fields. The domain lists them in `evaluation/evaluators.ts`. */
  z.strictObject({ kind: z.literal('named'), name: z.string(), spec: z.record(z.string(), Json).default({}) }),
]);
export type Evaluator = z.infer<typeof Evaluator>;

export const Limits = z.strictObject({
  attemptsMax: z.number().int().min(1).max(100).default(4),
  stepsMax: z.number().int().min(1).max(10_000).default(200),
  wallMs: z.number().int().min(100).max(86_400_000).default(600_000),
  /** Steps of one attempt of an agent that acts in steps. */
  agentStepsMax: z.number().int().min(1).max(200).default(20),
  modelTokensMax: z.number().int().min(1).max(1_000_000_000).default(1_000_000),
  /** null: unlimited. */
  costUsdMax: z.number().positive().nullable().default(null),
  sandbox: SandboxLimits.prefault({}),
});
export type Limits = z.infer<typeof Limits>;

export const MemoryLayer = z.enum(['episodic', 'semantic', 'procedural']);
export type MemoryLayer = z.infer<typeof MemoryLayer>;

export const MemoryPolicy = z.strictObject({
  off: z.boolean().default(false),
  readOnly: z.boolean().default(false),
  recallCount: z.number().int().min(0).max(20).default(3),
  preferSkills: z.boolean().default(true),
  layers: z.array(MemoryLayer).default(['episodic', 'semantic', 'procedural']),
});
export type MemoryPolicy = z.infer<typeof MemoryPolicy>;

/** `attempts`: the model writes whole programs, and each is judged. `codeact`: one conversation of code and its output. */
export const TASK_STRATEGIES = ['attempts', 'codeact'] as const;
export const TaskStrategy = z.enum(TASK_STRATEGIES);
export type TaskStrategy = z.infer<typeof TaskStrategy>;

/** A task as a caller requests it. Immutable once accepted. */
export const TaskSpec = z.strictObject({
  agent: AgentId.default('default'),
  user: UserId.optional(),
  prompt: notBlank('must not be empty').max(PROMPT_MAX_CHARS),
  files: Files.default([]),
  mode: z.enum(['inference', 'training']).default('inference'),
  evaluator: Evaluator.default({ kind: 'none' }),
  referenceSolution: z.string().max(1_000_000).optional(),
  limits: Limits.prefault({}),
  /** Absent in a request: the strategy of the agent's settings. An accepted task has a strategy. */
  strategy: TaskStrategy.optional(),
  memory: MemoryPolicy.prefault({}),
  priority: z.number().int().min(0).max(9).default(0),
  labels: Labels.default({}),
  /** The content comes from an untrusted source: skills learned from it are never approved automatically. */
  untrusted: z.boolean().optional(),
});
export type TaskSpec = z.infer<typeof TaskSpec>;

export type TaskState = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'input_required';
export const isFinal = (state: TaskState): state is Extract<TaskState, 'succeeded' | 'failed' | 'cancelled'> =>
  state === 'succeeded' || state === 'failed' || state === 'cancelled';

export type StopReason = 'solved' | 'attempts' | 'steps' | 'wall_time' | 'model_tokens' | 'cost' | 'budget' | 'cancelled' | 'error';

export const VERDICTS = ['AC', 'WA', 'TLE', 'MLE', 'RE'] as const;
export const Verdict = z.enum(VERDICTS);
export type Verdict = z.infer<typeof Verdict>;

export const Usage = z.strictObject({
  attempts: z.number().int().default(0),
  steps: z.number().int().default(0),
  modelCalls: z.number().int().default(0),
  inputTokens: z.number().int().default(0),
  outputTokens: z.number().int().default(0),
  costUsd: z.number().default(0),
  executions: z.number().int().default(0),
});
export type Usage = z.infer<typeof Usage>;

export const TaskResult = z.strictObject({
  verdict: Verdict,
  reason: z.string(),
  code: z.string(),
  output: z.string(),
  casesPassed: z.number().int(),
  casesTotal: z.number().int(),
  /** "name@version" of the skill that answered. */
  skill: z.string().nullable(),
  scripted: z.boolean(),
  model: z.string().nullable(),
});
export type TaskResult = z.infer<typeof TaskResult>;

/** Whether nobody judged: the task has no evaluator, and its code ran to its end. Such a result is stored as AC with 0 cases. */
export const isUnjudged = ({ verdict, casesTotal }: Pick<TaskResult, 'verdict' | 'casesTotal'>): boolean =>
  verdict === 'AC' && casesTotal === 0;

export const verdictText = (judged: Pick<TaskResult, 'verdict' | 'casesTotal'>): string =>
  isUnjudged(judged) ? 'not judged' : judged.verdict;

/** Learning after the end of a training task: lessons and a skill are made from its attempts. `none`: nothing follows. */
export interface Learning {
  readonly state: 'none' | 'pending' | 'done' | 'failed';
  /** Usage of learning's calls. It isn't part of the task's usage. */
  readonly usage: Usage;
  readonly error: { code: string; message: string } | null;
}

/** A question to the task's caller. `deadlineAt`: ms since 1970; after it the task goes on without an answer. */
interface AskedQuestion {
  readonly key: string;
  readonly text: string;
  readonly deadlineAt: number;
}

/** The current state of a task. Only the worker with the rollout's current epoch writes `state` and the fields after it. */
export interface TaskRecord {
  readonly id: string;
  readonly tenant: z.infer<typeof TenantId>;
  readonly spec: TaskSpec;
  readonly state: TaskState;
  readonly stopReason: StopReason | null;
  readonly result: TaskResult | null;
  readonly usage: Usage;
  readonly error: { code: string; message: string } | null;
  readonly learning: Learning;
  readonly cancelRequested: boolean;
  /** The open question of a task in the state `input_required`; null in every other state. */
  readonly question: AskedQuestion | null;
  /** ms since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  readonly revision: number;
  /** W3C `traceparent` of the call that submitted the task; absent where it wasn't traced. */
  readonly traceparent?: string;
}

/** The events of a task, in order. Its event stream stores them as JSON. */
export type TaskEvent =
  | { type: 'state'; state: TaskState }
  | { type: 'worker'; epoch: number }
  | { type: 'attempt_started'; attempt: number }
  | { type: 'step'; step: string; attempt: number; kind: StepKind; summary: string; durationMs: number; usage: Usage; scripted: boolean }
  | {
      type: 'attempt_finished';
      attempt: number;
      verdict: Verdict;
      reason: string;
      casesPassed: number;
      casesTotal: number;
      skill: string | null;
    }
  | ({ type: 'question' } & AskedQuestion)
  | { type: 'finished' };

export type StepKind =
  | 'draft'
  | 'critique'
  | 'recall'
  | 'generate'
  | 'act'
  | 'compact'
  | 'sandbox'
  | 'cell'
  | 'tool'
  | 'skill'
  | 'bind'
  | 'wrap'
  | 'execute'
  | 'evaluate'
  | 'record'
  | 'learn';
