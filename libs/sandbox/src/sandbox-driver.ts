import { EtudeError } from '@etude/contracts/errors';
import type { Display, ExecutionRequest, ExitReason, RunResult } from '@etude/contracts/sandbox';
import type { SessionFile } from '@etude/contracts/sandbox-session';
import type { SupervisorFrame } from './frames.js';

/** What must be settled before a sandbox exists; everything else comes with the request. */
export interface SandboxShape {
  /** A template of the driver's settings. */
  readonly template: string;
  readonly memoryMiB: number;
  readonly diskMiB: number;
}

export interface SandboxExecution extends ExecutionRequest {
  /** A session's: nothing is emptied around the runs, cells keep their names, and an abort stops the runs, not the sandbox. */
  readonly keep?: boolean;
  /** Frames of this execution that the caller has seen already. */
  readonly after?: number;
}

/** Hears of an execution, in order. `at` is the frame's number, from which the execution can be followed again. */
export interface ExecutionSink {
  /** What run `run` printed, as it comes, up to the head that is kept. */
  output(run: number, stream: 'stdout' | 'stderr', text: string, at: number): void;
  /** One rich output of a cell. */
  display(run: number, data: Display, at: number): void;
  /** The run's end. Its stdout and stderr hold only what `output` was not told: the tail. */
  result(run: number, result: RunResult, at: number): void;
}

/** `lost`: the sandbox ended under the code. kernel_lost is the code's own doing, all else the infrastructure's. */
export type ExecutionEnd = { readonly ended: 'done' } | LostSandbox;

export interface LostSandbox {
  readonly ended: 'lost';
  readonly exit: ExitReason;
  /** What was seen, for people: "the pod was evicted: The node was low on resource: memory". */
  readonly message: string;
}

/**
 * Files in the working directory of a claimed sandbox. Paths are relative to it.
 *
 * @throws EtudeError INVALID_ARGUMENT (a path that leaves it, no regular file, a wrong offset with `metadata.size`), NOT_FOUND,
 *   PAYLOAD_TOO_LARGE (the disk is full), SANDBOX_UNAVAILABLE (the sandbox is gone)
 */
export interface SandboxFiles {
  /** Appends to an upload, which starts at offset 0; with `final` it takes its place. @returns bytes that have arrived */
  write(path: string, offset: number, data: Uint8Array, final: boolean): Promise<number>;
  /** `entry` is null where there is no such file; `uploadedBytes` is how far an upload has come that is not final. */
  stat(path: string): Promise<{ readonly entry: SessionFile | null; readonly uploadedBytes: number }>;
  /** At most FILE_CHUNK_BYTES_MAX; fewer bytes than asked for mean the end. */
  read(path: string, offset: number, length: number): Promise<{ readonly data: Uint8Array; readonly sizeBytes: number }>;
  /** Regular files by path, those behind `after`. */
  list(after: string, limit: number): Promise<{ readonly entries: readonly SessionFile[]; readonly more: boolean }>;
  delete(path: string): Promise<void>;
}

/** One sandbox, bound to one claim until it is released. */
export interface ClaimedSandbox {
  /** For `SandboxDriver.attach`, from this process or another; null where nobody else can reach it. */
  readonly place: string | null;
  /** Resolves when the sandbox has ended by itself; never after `release`. */
  readonly lost: Promise<LostSandbox>;
  readonly files: SandboxFiles;
  /**
   * Runs the runs in order. The same `executionId` again, also after `attach`, follows the first from `after` on and runs nothing;
   * without runs it only follows.
   *
   * @throws EtudeError NOT_FOUND where there is nothing to follow: one without runs that never ran, or one that is no longer kept
   * @throws AbortError when `signal` aborts, after what ran was stopped: the whole sandbox, or with `keep` only the runs
   */
  execute(execution: SandboxExecution, sink: ExecutionSink, signal: AbortSignal): Promise<ExecutionEnd>;
  /** Destroys it. Resolves when nothing of it runs any more; calling it again is fine. */
  release(): Promise<void>;
  /** Lets go of it without ending it, for whoever attaches to its place within the lease. Does nothing where that is null. */
  leave?(): Promise<void>;
}

/** Sandboxes that are ready for a claim at this moment, and claims that wait for one. */
export interface SandboxCounts {
  readonly free: number;
  readonly waiting: number;
}

/**
 * Where sandboxes come from: local processes, pods.
 *
 * A claim is never handed out twice, and a sandbox that was claimed never serves another claim. While this process lives it keeps
 * its claims' leases; after its end an unattached sandbox lives no longer than its lease.
 * Not in it: idempotence across sandboxes, retries, who may use it.
 */
export interface SandboxDriver {
  /**
   * Waits its turn where none is free.
   *
   * @throws EtudeError SANDBOX_CAPACITY (none became free in time, too many wait, quota, unschedulable) or SANDBOX_UNAVAILABLE, both
   *   with `metadata.exit` of the exit reasons; INVALID_ARGUMENT for a template or size that the settings don't have
   */
  claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox>;
  /** Takes over a claim that another process held, or this one. @throws EtudeError SANDBOX_UNAVAILABLE where it is gone */
  attach(place: string, signal: AbortSignal): Promise<ClaimedSandbox>;
  counts(): SandboxCounts;
  /** For readiness. @throws EtudeError SANDBOX_UNAVAILABLE where no sandboxes can be had just now */
  check(): void;
  /** Destroys what this process has claimed, and what nobody else could use. */
  close(): Promise<void>;
}

/** One sandbox as its driver holds it. */
export interface SandboxLink {
  readonly alive: boolean;
  /** Resolves when no process of the sandbox exists any more. */
  readonly gone: Promise<void>;
  send(frame: SupervisorFrame): void;
  /** The next frame; null once the sandbox is gone. One reader at a time. */
  receive(): Promise<SupervisorFrame | null>;
  /** What was said when it could not be started. */
  complaint(): string;
  /** Kills process 1 of the sandbox, and with it all others. */
  destroy(): Promise<void>;
}

/** Where a driver's sandboxes come from. */
export interface SandboxSource {
  open(shape: SandboxShape): SandboxLink;
  /** Destroys everything that was opened. */
  close(): Promise<void>;
}

/** The error of a sandbox that could not be had, or is gone. */
export const unavailable = (message: string, exit: ExitReason = 'infra') =>
  new EtudeError('SANDBOX_UNAVAILABLE', message, { metadata: { exit } });

/** The error of a claim for a template that the settings don't have. */
export const noTemplate = (name: string, known: ReadonlyMap<string, unknown>) =>
  new EtudeError('INVALID_ARGUMENT', `there is no sandbox template "${name}", only ${[...known.keys()].join(', ')}`, { field: 'template' });

/** Resolves when the supervisor is there. @throws EtudeError SANDBOX_UNAVAILABLE with what bubblewrap said */
export async function expectHello(link: SandboxLink): Promise<void> {
  const frame = await link.receive();
  if (frame?.type !== 'hello') throw unavailable(`a sandbox could not be started: ${link.complaint() || 'it ended at once'}`);
}
