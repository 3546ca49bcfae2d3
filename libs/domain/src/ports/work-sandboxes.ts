import type { Json } from '@etude/contracts/json';
import type { Display, RunResult, SandboxLimits } from '@etude/contracts/sandbox';

/** A tool that code in a cell can call as a function. */
export interface CellTool {
  /** Such as "fs_read" or "notes/search". `tools.call` takes any name; a name that is an identifier is also a function. */
  readonly name: string;
  /** Names of the parameters, in the order of positional arguments. */
  readonly parameters: readonly string[];
  readonly description: string;
}

export interface CellToolCall {
  /** The call's place in its cell, from 1 on. The same call has the same number when the cell is followed again. */
  readonly number: number;
  readonly tool: string;
  readonly arguments: Readonly<Record<string, Json>>;
}

export type CellToolAnswer = { readonly success: true; readonly result: Json } | { readonly success: false; readonly error: string };

export interface ScratchpadValue {
  readonly name: string;
  /** Its `repr`, cut at 100 characters with "...". */
  readonly shown: string;
  /** The pickled value in base64. Absent if it can't be pickled, is too large, or is lost. */
  readonly pickled?: string;
  /** The file of the workspace with the pickled value, if it is too large for `pickled`. */
  readonly file?: string;
  /** Why the value is gone, for people and models. */
  readonly lost?: string;
}

/** What code kept with `store`, `observe` and `fail`. */
export interface Scratchpad {
  readonly values: readonly ScratchpadValue[];
  readonly observations: readonly string[];
  readonly failedApproaches: readonly string[];
}

export const EMPTY_SCRATCHPAD: Scratchpad = { values: [], observations: [], failedApproaches: [] };

export interface WorkCell {
  /** The same id again follows the first execution from its begin and runs nothing. */
  readonly executionId: string;
  readonly code: string;
  readonly tools: readonly CellTool[];
  /** The state that an interpreter without one begins with. */
  readonly scratchpad: Scratchpad;
}

/** How a cell ended. Long streams are cut in the middle. `displays` are the values it showed, in order. */
export interface WorkCellOutcome extends Pick<RunResult, 'exit' | 'exitCode' | 'signal' | 'stdout' | 'stderr' | 'error'> {
  readonly displays: readonly Display[];
  /** The interpreter was restarted. Its variables are lost, files are kept. */
  readonly stateLost: boolean;
  /** Absent where `stateLost`: then the state before the cell is the latest one. */
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

export interface FoundLine {
  readonly path: string;
  /** From 1 on. */
  readonly line: number;
  readonly text: string;
}

/** A rollout's own sandbox. Files can be read and written while a cell runs. */
export interface WorkSandbox {
  /** "sandboxes/{sandbox}" */
  readonly name: string;
  /**
   * Runs a cell in the sandbox's interpreter, whose names live on. Each call of a tool waits until `answer` resolves.
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
