import type { Display, ExecutionRequest, ExecutionResult, FoundLine, RunResult, SandboxLimits } from '@etude/contracts/sandbox';
import type { CellTool, CellToolAnswer, CellToolCall, Scratchpad } from '@etude/contracts/scratchpad';

/**
 * Runs untrusted code in one fresh sandbox, which is always destroyed afterwards.
 *
 * A repeat of an `executionId` returns the first result and runs nothing. Ids are unique across tenants.
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY (system, retryable); an AbortError when `signal` aborts, after the code was
 * stopped. A failure of the code itself is a result, never an error.
 * Why fresh: a reused sandbox would leak files between tenants.
 * Not part of this port: judging the output; interactive sessions.
 */
export interface Sandboxes {
  execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult>;
}

export interface WorkCell {
  /** A repeat of an id runs nothing, but follows the first execution from its beginning. */
  readonly executionId: string;
  readonly code: string;
  readonly tools: readonly CellTool[];
  /** The initial scratchpad, used if the interpreter has none yet. If absent, the cell has no scratchpad. */
  readonly scratchpad?: Scratchpad;
}

/** The output and the end of a cell. Long streams are cut in the middle. `displays` are the values that the cell showed, in order. */
export interface WorkCellOutcome extends Pick<RunResult, 'exit' | 'exitCode' | 'signal' | 'stdout' | 'stderr' | 'error'> {
  readonly displays: readonly Display[];
  /** Whether the interpreter was restarted. Then variables are lost, but files are kept. */
  readonly stateLost: boolean;
  /** The scratchpad after the cell. Absent if `stateLost`, or if a limit or an interrupt stopped its reading: the earlier one is then valid. */
  readonly scratchpad?: Scratchpad;
}

/** The sandbox has ended, and its variables and files are lost. The work must go on in another sandbox. */
export class SandboxLost extends Error {
  constructor(readonly why: string) {
    super(`the sandbox was lost: ${why}`);
    this.name = 'SandboxLost';
  }
}

export interface WorkFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Time in ms since 1970. */
  readonly modifiedAt: number;
}

/** A sandbox of a rollout or a tool session. Files can be read and written while a cell runs. */
export interface WorkSandbox {
  /** "sandboxes/{sandbox}" */
  readonly name: string;
  /**
   * Runs a cell in the sandbox's interpreter, which keeps its variables from cell to cell. Each tool call of the cell waits until `answer`
   * resolves, at most 15 minutes.
   *
   * @param answer called once for each tool call. If the cell is followed again, `answer` is called again with the same call numbers
   * @throws what `answer` throws, while the cell goes on running; `SandboxLost`; an AbortError when `signal` aborts, after the cell was stopped
   */
  run(cell: WorkCell, answer: (call: CellToolCall) => Promise<CellToolAnswer>, signal: AbortSignal): Promise<WorkCellOutcome>;
  /** The first 1,000 regular files below the working directory, sorted by path. */
  list(signal: AbortSignal): Promise<readonly WorkFile[]>;
  /** The first `bytesMax` bytes of a file, or null if there is no such file. */
  read(path: string, bytesMax: number, signal: AbortSignal): Promise<Uint8Array | null>;
  /** Creates or replaces a file, and makes its folders. @throws EtudeError INVALID_ARGUMENT for a path outside the working directory */
  write(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Lines that contain `text`, sorted by path and line and cut at 300 characters. Binary files and files over 1 MiB are skipped. */
  search(text: string, limit: number, signal: AbortSignal): Promise<{ readonly lines: readonly FoundLine[]; readonly total: number }>;
  /** Ends the sandbox. If it has ended, nothing happens. */
  close(signal: AbortSignal): Promise<void>;
}

export interface WorkSandboxRequest {
  readonly tenant: string;
  /** A repeat of an id returns the same sandbox. */
  readonly requestId: string;
  readonly template: string | undefined;
  readonly limits: SandboxLimits;
}

/**
 * Opens sandboxes in which rollouts work over many steps.
 *
 * A sandbox ends some minutes after its last use. Every method may throw EtudeError SANDBOX_UNAVAILABLE or SANDBOX_CAPACITY (retryable), and
 * throws `SandboxLost` after the sandbox has ended.
 * Not part of this port: journaling, tools.
 */
export interface WorkSandboxes {
  open(request: WorkSandboxRequest, signal: AbortSignal): Promise<WorkSandbox>;
}
