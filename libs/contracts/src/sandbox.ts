import { z } from 'zod';
import { Json } from './json.js';
import { RequestId, SandboxId } from './ids.js';
import { CellTools, Scratchpad } from './scratchpad.js';

/** Limits for each single run of an execution. */
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
/** Exits that the infrastructure caused. Only these are retried. */
export const RETRYABLE_EXITS: ReadonlySet<ExitReason> = new Set(['evicted', 'node_lost', 'image_pull', 'capacity', 'infra']);

/** Runs a program as `__main__`, with its own stdin. */
const ProgramRun = z.strictObject({ kind: z.literal('program'), code: z.string(), stdin: z.string().default('') });
/** Calls a function that the code defines. Its value comes back as JSON (see `RunResult.value`). */
const CallRun = z.strictObject({
  kind: z.literal('call'),
  code: z.string(),
  entryPoint: z.string(),
  args: z.array(Json).default([]),
  kwargs: z.record(z.string(), Json).default({}),
  /** Limits of the value as JSON: its size, and its count of commas and brackets. Exceeding a limit fails the call with a ValueError. */
  valueKiB: z.number().int().min(1).max(65_536).optional(),
  valueParts: z.number().int().min(1).max(2_000_000).optional(),
});
/** Limits for values that a service inspects part by part, since its other calls wait meanwhile. */
export const SHOWN_VALUE = { valueKiB: 1_024, valueParts: 20_000 } as const;
/**
 * Runs the answer and its tests in two processes: `setup + code` in one, `setup + tests` in the other.
 * The tests call `entryPoint` across processes. Only the tests' process can write the verdict.
 */
const CheckedRun = z.strictObject({
  kind: z.literal('checked'),
  setup: z.string().default(''),
  code: z.string(),
  entryPoint: z.string(),
  tests: z.string(),
});
/** Runs a shell command in the working directory, after `files` were placed there. */
const CommandRun = z.strictObject({ kind: z.literal('command'), command: z.string(), stdin: z.string().default('') });

/**
 * Runs Python in the interpreter of a session, which keeps names between cells. Outside a session: a program without stdin.
 * `scratchpad` gives the cell a scratchpad. If the interpreter has none yet, it starts with this state.
 */
const CellRun = z.strictObject({
  kind: z.literal('cell'),
  code: z.string(),
  tools: CellTools.optional(),
  scratchpad: Scratchpad.optional(),
});

export const SandboxRun = z.discriminatedUnion('kind', [ProgramRun, CallRun, CheckedRun, CommandRun, CellRun]);
export type SandboxRun = z.infer<typeof SandboxRun>;

export const SandboxFile = z.strictObject({ path: z.string().min(1).max(512), contentBase64: z.base64() });
export type SandboxFile = z.infer<typeof SandboxFile>;

/** Name of a template in `ETUDE_SANDBOX_TEMPLATES_PATH`. */
export const TemplateName = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$/, 'must be 1 to 30 lower-case letters, digits and "-", such as "default"');

/** All work of one sandbox between claim and destruction. Runs are sequential, each in a fresh fork. */
export const ExecutionRequest = z.object({
  executionId: z.string().min(1).max(200),
  tenant: z.string(),
  /** The owner of code that runs for no task, so that an erasure finds it. */
  owner: z.strictObject({ agent: z.string(), user: z.string().nullable() }).optional(),
  files: z.array(SandboxFile).default([]),
  limits: SandboxLimits,
  /** PYTHONHASHSEED of the forked interpreters. Verification runs the same code under two seeds. */
  hashSeed: z.number().int().min(0).max(4_294_967_295).optional(),
  /** The kind of sandbox: image, sizes, packages, from the controller's settings. Absent: "default", which always exists. */
  template: TemplateName.optional(),
  /** Stop after the first run that doesn't exit `ok`, and leave the rest out of the result. */
  stopOnFailure: z.boolean().default(false),
  runs: z.array(SandboxRun).min(1).max(1_000),
});
export type ExecutionRequest = z.infer<typeof ExecutionRequest>;

/** One rich output by media type: text as text, binary as base64, JSON as JSON. `text/plain` is always present. */
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
   * `call` only: the returned value as JSON. Tuples become lists, sets `{"$set": [...]}`, bytes `{"$bytes": base64}`, complex `{"$complex":
   * [re, im]}`, dicts with other keys than text `{"$dict": [[k, v], ...]}`, NaN and infinities `{"$float": "nan"|"inf"|"-inf"}`, integers
   * beyond 2^53 `{"$int": "..."}`, anything else `{"$repr": text}`.
   */
  value: Json.optional(),
  /** `call` and `checked` only: the exception that ended the run. */
  error: z.strictObject({ type: z.string(), message: z.string(), line: z.number().int().nullable() }).optional(),
  /** `cell` only: the rich outputs, in order. */
  displays: z.array(Display).optional(),
  /** `cell` only: the interpreter was ended, so the next cell starts without names. */
  stateLost: z.boolean().optional(),
  /** `cell` only: the scratchpad after the cell. */
  scratchpad: Scratchpad.optional(),
  /** `checked` only: whether the checker ran all tests to the end without a failure. */
  passed: z.boolean().optional(),
});
export type RunResult = z.infer<typeof RunResult>;

export const ExecutionResult = z.object({ executionId: z.string(), runs: z.array(RunResult) });
export type ExecutionResult = z.infer<typeof ExecutionResult>;

/** Lifetime of a session that isn't renewed: the maximum and the default. */
const SESSION_TTL_MS_MAX = 24 * 3_600_000;
export const SESSION_TTL_MS_DEFAULT = 600_000;
const LABELS_MAX = 64;
export const FILE_CHUNK_BYTES_MAX = 512 * 1024;

/** The request to open a session. Repeating a `requestId` returns the same session. */
export const SessionRequest = z.strictObject({
  tenant: z.string(),
  requestId: RequestId,
  template: TemplateName.default('default'),
  limits: SandboxLimits,
  ttlMs: z.number().int().min(1_000).max(SESSION_TTL_MS_MAX).default(SESSION_TTL_MS_DEFAULT),
  labels: z
    .record(z.string().max(63), z.string().max(255))
    .refine((labels) => Object.keys(labels).length <= LABELS_MAX, `must not have more than ${LABELS_MAX} entries`)
    .default({}),
  /** Each cell has a scratchpad. */
  scratchpad: z.boolean().optional(),
  /** Doesn't count among the tenant's open sessions. Only services of the installation can ask for it. */
  uncounted: z.boolean().optional(),
});
export type SessionRequest = z.infer<typeof SessionRequest>;

export const SESSION_STATES = ['open', 'closed', 'expired', 'lost'] as const;

/** A session as callers see it. It is kept for an hour after its end, so that callers can learn how it ended. */
export const SandboxSession = z.object({
  id: SandboxId,
  tenant: z.string(),
  state: z.enum(SESSION_STATES),
  /** For `lost`: the reason, starting with the exit reason of the infrastructure, such as evicted or node_lost. */
  stateReason: z.string().default(''),
  template: TemplateName,
  limits: SandboxLimits,
  labels: z.record(z.string(), z.string()),
  scratchpad: z.boolean().optional(),
  createdAt: z.number().int(),
  expiresAt: z.number().int(),
});
export type SandboxSession = z.infer<typeof SandboxSession>;

/** A regular file below a session's working directory. */
export const SessionFile = z.strictObject({
  path: z.string(),
  sizeBytes: z.number().int(),
  modifiedMs: z.number().int(),
});
export type SessionFile = z.infer<typeof SessionFile>;

export const FoundLine = z.strictObject({
  path: z.string(),
  /** Number of the line, from 1. */
  line: z.number().int(),
  /** Cut at 300 characters. */
  text: z.string(),
});
export type FoundLine = Readonly<z.infer<typeof FoundLine>>;
