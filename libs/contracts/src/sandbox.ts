import { z } from 'zod';
import { Json } from './json.js';

/** Resources of each single run inside an execution. */
export const SandboxLimits = z.strictObject({
  cpuMs: z.number().int().min(10).max(600_000).default(10_000),
  wallMs: z.number().int().min(10).max(3_600_000).default(20_000),
  memoryMiB: z.number().int().min(16).max(65_536).default(512),
  processes: z.number().int().min(1).max(4_096).default(64),
  fileSizeMiB: z.number().int().min(1).max(65_536).default(64),
  outputKiB: z.number().int().min(1).max(16_384).default(256),
  diskMiB: z.number().int().min(1).max(65_536).default(128),
  openFiles: z.number().int().min(16).max(65_536).default(256),
});
export type SandboxLimits = z.infer<typeof SandboxLimits>;

export const EXIT_REASONS = [
  'ok',
  'nonzero',
  'signal',
  'wall',
  'cpu',
  'no_output',
  'oom',
  'output',
  'disk',
  'pids',
  'cancelled',
  'kernel_lost',
  'evicted',
  'oomkilled',
  'node_lost',
  'image_pull',
  'capacity',
  'infra',
] as const;
export type ExitReason = (typeof EXIT_REASONS)[number];
/** The infrastructure's fault, and the only ones worth another try. */
export const RETRYABLE_EXITS: ReadonlySet<ExitReason> = new Set(['evicted', 'node_lost', 'image_pull', 'capacity', 'infra']);

/** A program as `__main__`, with its own stdin. */
const ProgramRun = z.strictObject({ kind: z.literal('program'), code: z.string(), stdin: z.string().default('') });
/** One call of a function that the code defines; its value comes back as JSON (see `RunResult.value`). */
const CallRun = z.strictObject({
  kind: z.literal('call'),
  code: z.string(),
  entryPoint: z.string(),
  args: z.array(Json).default([]),
  kwargs: z.record(z.string(), Json).default({}),
  /** What the value may be as JSON: its size, and its commas and brackets. More is an error of the call, a ValueError. */
  valueKiB: z.number().int().min(1).max(65_536).optional(),
  valueParts: z.number().int().min(1).max(2_000_000).optional(),
});
/** For values that are looked at and handed on, part by part, by services that others wait for. */
export const SHOWN_VALUE = { valueKiB: 1_024, valueParts: 20_000 } as const;
/**
 * The answer and its tests, in two processes: `setup + code` in one, `setup + tests` in the other, which calls
 * `entryPoint` across. Only the second can write the verdict.
 */
const CheckedRun = z.strictObject({
  kind: z.literal('checked'),
  setup: z.string().default(''),
  code: z.string(),
  entryPoint: z.string(),
  tests: z.string(),
});
/** A shell command in the working directory, after `files` were placed there. */
const CommandRun = z.strictObject({ kind: z.literal('command'), command: z.string(), stdin: z.string().default('') });

/** Python in the interpreter of a session, which keeps its names from cell to cell. Outside a session: a program without stdin. */
const CellRun = z.strictObject({ kind: z.literal('cell'), code: z.string() });

export const SandboxRun = z.discriminatedUnion('kind', [ProgramRun, CallRun, CheckedRun, CommandRun, CellRun]);
export type SandboxRun = z.infer<typeof SandboxRun>;

export const SandboxFile = z.strictObject({ path: z.string().min(1).max(512), contentBase64: z.base64() });
export type SandboxFile = z.infer<typeof SandboxFile>;

/** As in `ETUDE_SANDBOX_TEMPLATES_PATH`. */
export const TemplateName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/, 'must be 1 to 30 lower-case letters, digits and "-", such as "default"');

/** Everything one sandbox does between claim and destruction. Runs are sequential, each in a fresh fork. */
export const ExecutionRequest = z.object({
  executionId: z.string().min(1).max(200),
  tenant: z.string(),
  /** Whose code it is, where it is for no task, so that it is erased with the rest of theirs. */
  owner: z.strictObject({ agent: z.string(), user: z.string().nullable() }).optional(),
  files: z.array(SandboxFile).default([]),
  limits: SandboxLimits,
  /** PYTHONHASHSEED of the warmed interpreter's children; verification runs the same code under two. */
  hashSeed: z.number().int().min(0).max(4_294_967_295).optional(),
  /** Which kind of sandbox: image, sizes, packages. Templates are settings of the controller; absent: "default", which always exists. */
  template: TemplateName.optional(),
  /** Stop after the first run that does not exit `ok`; the rest is left out of the result. */
  stopOnFailure: z.boolean().default(false),
  runs: z.array(SandboxRun).min(1).max(1_000),
});
export type ExecutionRequest = z.infer<typeof ExecutionRequest>;

/** One rich output by media type: text as text, binary as base64, JSON as JSON. `text/plain` is always there. */
export const Display = z.record(z.string(), Json);
export type Display = z.infer<typeof Display>;

export const RunResult = z.object({
  exit: z.enum(EXIT_REASONS),
  exitCode: z.number().int().nullable(),
  signal: z.number().int().nullable(),
  stdout: z.string(),
  stderr: z.string(),
  /** Bytes cut from the middle of each stream. */
  stdoutCutBytes: z.number().int(),
  stderrCutBytes: z.number().int(),
  cpuMs: z.number(),
  wallMs: z.number(),
  memoryPeakKiB: z.number(),
  /**
   * `call` only: what the function returned, as JSON. Tuples become lists, sets `{"$set": [...]}`, bytes
   * `{"$bytes": base64}`, complex `{"$complex": [re, im]}`, dicts with keys other than text `{"$dict": [[k, v], ...]}`,
   * NaN and infinities `{"$float": "nan"|"inf"|"-inf"}`, integers beyond 2^53 `{"$int": "..."}`, anything else `{"$repr": text}`.
   */
  value: Json.optional(),
  /** `call` and `checked`: the exception that ended it. */
  error: z.strictObject({ type: z.string(), message: z.string(), line: z.number().int().nullable() }).optional(),
  /** `cell` only: what it displayed, in order. */
  displays: z.array(Display).optional(),
  /** `cell` only: its interpreter had to be ended, so the next cell starts with no names. */
  stateLost: z.boolean().optional(),
  /** `checked` only: true only if the checker ran all tests to their end and none failed. */
  passed: z.boolean().optional(),
});
export type RunResult = z.infer<typeof RunResult>;

export const ExecutionResult = z.object({ executionId: z.string(), runs: z.array(RunResult) });
export type ExecutionResult = z.infer<typeof ExecutionResult>;
