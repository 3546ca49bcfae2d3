import { EtudeError } from '@etude/contracts/errors';
import type { Display, ExecutionRequest, ExitReason, FoundLine, RunResult, SessionFile } from '@etude/contracts/sandbox';
import type { CellToolAnswer, CellToolCall } from '@etude/contracts/scratchpad';
import type { SupervisorFrame } from './frames.js';

/** The fields needed to open a sandbox. All other fields come with the execution. */
export interface SandboxShape {
  /** Name of a template in the driver's settings. */
  readonly template: string;
  readonly memoryMiB: number;
  readonly diskMiB: number;
}

export interface SandboxExecution extends ExecutionRequest {
  /** true in a session: files and Python names of earlier runs are kept, and an abort stops the runs but not the sandbox. */
  readonly keep?: boolean;
}

/** Gets the events of an execution, in order: first those of its first run. */
export interface ExecutionSink {
  /** Output of a run while it runs: only the head, the first half of `outputKiB` of each stream. */
  output(stream: 'stdout' | 'stderr', text: string): void;
  display(data: Display): void;
  /** A call of a tool, which waits for `ClaimedSandbox.answer`. */
  toolCall?(call: CellToolCall): void;
  /** The end of a run. Its stdout and stderr hold only the tail, the text that `output` did not get. */
  result(result: RunResult): void;
}

/** How a sandbox ended by itself. */
export interface LostSandbox {
  /** If the infrastructure caused the end, the exit is one of RETRYABLE_EXITS. */
  readonly exit: ExitReason;
  /** What was observed, for people: "the pod was evicted: The node was low on resource: memory". */
  readonly message: string;
}

/**
 * Files in the working directory of a claimed sandbox. Paths are relative to it.
 *
 * @throws EtudeError INVALID_ARGUMENT (a path out of the directory, not a regular file, a wrong offset: `metadata.size` has the right one),
 *   NOT_FOUND, PAYLOAD_TOO_LARGE (the disk is full), SANDBOX_UNAVAILABLE (the sandbox is gone)
 */
export interface SandboxFiles {
  /** Appends to the upload of `path`, which starts at offset 0; `final` puts the file in place. @returns bytes received so far */
  write(path: string, offset: number, data: Uint8Array, final: boolean): Promise<number>;
  /** `entry` is null if the file doesn't exist. `uploadedBytes` is the size of an unfinished upload, else 0. */
  stat(path: string): Promise<{ readonly entry: SessionFile | null; readonly uploadedBytes: number }>;
  /** Reads at most FILE_CHUNK_BYTES_MAX bytes. Fewer bytes than asked for mean the end of the file. */
  read(path: string, offset: number, length: number): Promise<{ readonly data: Uint8Array; readonly sizeBytes: number }>;
  /** Regular files ordered by path, starting after the path `after`. `more`: the list was cut at `limit`. */
  list(after: string, limit: number): Promise<{ readonly entries: readonly SessionFile[]; readonly more: boolean }>;
  delete(path: string): Promise<void>;
  /** Lines that contain `text`, by path and line, without binary files and files over 1 MiB. `total` counts all of them. */
  search(text: string, limit: number): Promise<{ readonly lines: readonly FoundLine[]; readonly total: number }>;
}

/** One sandbox, bound to one claim until it is released. */
export interface ClaimedSandbox {
  /** Address for `SandboxDriver.attach`, in this process or another; null where no other process can reach the sandbox. */
  readonly place: string | null;
  /** Resolves when the sandbox has ended by itself; never after `release`. */
  readonly lost: Promise<LostSandbox>;
  readonly files: SandboxFiles;
  /**
   * Executes the runs in order. A repeated `executionId`, also after `attach`, runs nothing and gets the events of the first execution.
   * An execution without runs never runs anything; it only gets the events of an earlier execution with its id.
   *
   * @returns null after the last run; otherwise why the sandbox ended while the code ran
   * @throws EtudeError NOT_FOUND for an execution without runs that never ran, or whose frames are no longer stored
   * @throws AbortError when `signal` aborts, after the code was stopped. Without `keep`, the whole sandbox is destroyed
   */
  execute(execution: SandboxExecution, sink: ExecutionSink, signal: AbortSignal): Promise<LostSandbox | null>;
  /** Answers the call `number` of an execution. Does nothing unless that call waits. @throws EtudeError SANDBOX_UNAVAILABLE */
  answer(executionId: string, number: number, answer: CellToolAnswer): Promise<void>;
  /** Destroys the sandbox. Resolves when none of its processes runs any more. Idempotent. */
  release(): Promise<void>;
  /** Gives the claim up without ending the sandbox. Another process may attach within the lease. Does nothing if `place` is null. */
  leave?(): Promise<void>;
}

/** Sandboxes that are ready for a claim at this moment, and claims that wait for a sandbox. */
export interface SandboxCounts {
  readonly free: number;
  readonly waiting: number;
}

/**
 * Provides sandboxes: local processes or pods.
 *
 * A claimed sandbox never serves another claim. This process renews the leases of its claims while it lives. If it dies, a sandbox ends
 * with its lease, unless another process takes the claim over.
 * Not part of this port: idempotence across sandboxes, retries, authorization.
 */
export interface SandboxDriver {
  /**
   * Waits in line if no sandbox is free.
   *
   * @throws EtudeError SANDBOX_CAPACITY (none became free in time, too many wait, quota, unschedulable) or SANDBOX_UNAVAILABLE, both
   *   with the exit reason in `metadata.exit`; INVALID_ARGUMENT for a template or size that the settings don't have
   */
  claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox>;
  /** Takes over the claim at `place`, held by another process or by this process. @throws EtudeError SANDBOX_UNAVAILABLE if the sandbox is gone */
  attach(place: string, signal: AbortSignal): Promise<ClaimedSandbox>;
  counts(): SandboxCounts;
  /**
   * For readiness.
   *
   * @returns a warning for people about the machine, if there is one
   * @throws EtudeError SANDBOX_UNAVAILABLE while no sandbox can be provided
   */
  check(): string | undefined;
  /** Destroys the sandboxes that this process has claimed, and free ones that no other process can use. */
  close(): Promise<void>;
}

export interface SandboxLink {
  readonly alive: boolean;
  /** Resolves when no process of the sandbox exists any more. */
  readonly gone: Promise<void>;
  send(frame: SupervisorFrame): void;
  /** The next frame; null once the sandbox is gone. One reader at a time. */
  receive(): Promise<SupervisorFrame | null>;
  /** For people: why the sandbox could not be started or reached. '' if nothing is known. */
  complaint(): string;
  /** Kills process 1 of the sandbox, and with it all other processes. */
  destroy(): Promise<void>;
}

export interface SandboxSource {
  open(shape: SandboxShape): SandboxLink;
  /** Destroys all sandboxes that it opened. */
  close(): Promise<void>;
}

export const unavailable = (message: string, exit: ExitReason = 'infra') =>
  new EtudeError('SANDBOX_UNAVAILABLE', message, { metadata: { exit } });

export const noTemplate = (name: string, known: ReadonlyMap<string, unknown>) =>
  new EtudeError('INVALID_ARGUMENT', `no sandbox template "${name}"; use one of ${[...known.keys()].join(', ')}`, { field: 'template' });

/** Waits for the hello of the supervisor. @throws EtudeError SANDBOX_UNAVAILABLE with the complaint of the link */
export async function expectHello(link: SandboxLink): Promise<void> {
  const frame = await link.receive();
  if (frame?.type !== 'hello') throw unavailable(`a sandbox could not be started: ${link.complaint() || 'it ended at once'}`);
}
