import type { Display, ExecutionRequest, ExecutionResult, FoundLine, RunResult, SandboxLimits } from '@etude/contracts/sandbox';
import type { CellTool, CellToolAnswer, CellToolCall, Scratchpad } from '@etude/contracts/scratchpad';

/**
 * Runs untrusted code in one fresh sandbox and destroys it on every path.
 *
 * The same `executionId` again returns the first result and runs nothing. Ids are unique across tenants.
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY (system, retryable); an AbortError when `signal` aborts, after the code was
 * stopped. A failure of the code itself is a result, never an error.
 * Why fresh: a reused one leaks files between tenants.
 * Not in it: judging the output; interactive sessions.
 */
export interface Sandboxes {
  execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult>;
}

export interface WorkCell {
  /** The same id again follows the first execution from its beginning and runs nothing. */
  readonly executionId: string;
  readonly code: string;
  readonly tools: readonly CellTool[];
  /** The first state of an interpreter that has none. Absent: the cell has no scratchpad. */
  readonly scratchpad?: Scratchpad;
}

/** How a cell ended. Long streams are cut in the middle. `displays` are the values it showed, in order. */
export interface WorkCellOutcome extends Pick<RunResult, 'exit' | 'exitCode' | 'signal' | 'stdout' | 'stderr' | 'error'> {
  readonly displays: readonly Display[];
  /** The interpreter was restarted. Its variables are lost, files are kept. */
  readonly stateLost: boolean;
  /** Absent if `stateLost`, or if an interrupt or a limit came while it was made. Then the state before the cell is the latest one. */
  readonly scratchpad?: Scratchpad;
}

/** The sandbox has ended, with its variables and files. The work goes on in another one. */
export class SandboxLost extends Error {
  /** @param why such as "its controller ended" */
  constructor(readonly why: string) {
    super(`the sandbox was lost: ${why}`);
    this.name = 'SandboxLost';
  }
}

export interface WorkFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** ms since 1970. */
  readonly modifiedAt: number;
}

/** A sandbox of a rollout or a tool session. Files can be read and written while a cell runs. */
export interface WorkSandbox {
  /** "sandboxes/{sandbox}" */
  readonly name: string;
  /**
   * Runs a cell in the sandbox's interpreter, whose names live on. Each call of a tool waits until `answer` resolves, 15 min
   * at most.
   *
   * @param answer called once for each call of the cell, again with the same number when a cell is followed again
   * @throws what `answer` throws, after the cell was left running; `SandboxLost`;
   * an AbortError when `signal` aborts, after the cell was stopped
   */
  run(cell: WorkCell, answer: (call: CellToolCall) => Promise<CellToolAnswer>, signal: AbortSignal): Promise<WorkCellOutcome>;
  /** Regular files below the working directory, by path; the first 1,000. */
  list(signal: AbortSignal): Promise<readonly WorkFile[]>;
  /** The first `bytesMax` bytes; null if there is no such file. */
  read(path: string, bytesMax: number, signal: AbortSignal): Promise<Uint8Array | null>;
  /** Creates or replaces a file, and makes its folders. @throws EtudeError INVALID_ARGUMENT for a path outside the working directory */
  write(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  /** Lines that contain `text`, by path and line, without binary files and files over 1 MiB. Long lines are cut at 300 characters. */
  search(text: string, limit: number, signal: AbortSignal): Promise<{ readonly lines: readonly FoundLine[]; readonly total: number }>;
  /** Ends the sandbox. Closing one that has ended changes nothing. */
  close(signal: AbortSignal): Promise<void>;
}

export interface WorkSandboxRequest {
  readonly tenant: string;
  /** The same id again gives the same sandbox. */
  readonly requestId: string;
  readonly template: string | undefined;
  readonly limits: SandboxLimits;
}

/**
 * Sandboxes that rollouts work in over many steps.
 *
 * A sandbox lives some minutes after its last use. Every method throws EtudeError SANDBOX_UNAVAILABLE or SANDBOX_CAPACITY (retryable), and
 * `SandboxLost` once the sandbox has ended.
 * Not in it: journaling, tools.
 */
export interface WorkSandboxes {
  open(request: WorkSandboxRequest, signal: AbortSignal): Promise<WorkSandbox>;
}
