import type { Display, RunResult } from '@etude/contracts/sandbox';
import type { SessionKey } from './tool-ports.js';

/** How a cell ended. Streams are whole but for what was cut from their middle; `displays` are what it showed, in order. */
export interface CellOutcome extends Pick<RunResult, 'exit' | 'exitCode' | 'signal' | 'stdout' | 'stderr' | 'error'> {
  readonly displays: readonly Display[];
  /** The interpreter had to be ended: names are gone, files stay. */
  readonly stateLost: boolean;
}

/** A sandbox in which names and files stay from call to call. */
export interface CodeSession {
  /** "sandboxes/{sandbox}": by it files are put in, fetched and deleted. */
  readonly sandbox: string;
  /** As in `ExecutionRequest`. */
  readonly template: string;
  /** There was another one before, which has ended with all that was in it. */
  readonly isReplaced: boolean;
  /**
   * Runs Python in the session's interpreter. The same `executionId` again answers with the first outcome and runs nothing.
   *
   * @throws EtudeError SANDBOX_CAPACITY while somebody else's cell runs; an AbortError when `signal` aborts, after the cell was stopped
   */
  run(cell: { readonly executionId: string; readonly code: string }, signal: AbortSignal): Promise<CellOutcome>;
  /**
   * Does what calls have to do one after another, in the order in which they came.
   *
   * @throws EtudeError SANDBOX_CAPACITY where too many wait; the signal's reason, where it aborts before its turn
   */
  inTurn<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Paths below the working directory, in order; the first 1,000. */
  files(signal: AbortSignal): Promise<readonly string[]>;
  /** Whether it is a file below the working directory, also beyond the first 1,000. What is no path there is not. */
  has(path: string, signal: AbortSignal): Promise<boolean>;
}

/** Sandboxes of sessions of tools. Each ends by itself some time after its last call. */
export interface CodeSessions {
  /**
   * The session's sandbox. Where there is none it is opened from `template`; where that can't be, answers why.
   *
   * @param key `session` may be the id of an open sandbox of the tenant: then it is that one, which is neither opened nor kept longer,
   * and from then on that of the key's agent and user
   * @throws EtudeError FAILED_PRECONDITION where it names a sandbox that has ended, or another agent's or user's; SANDBOX_UNAVAILABLE
   */
  open(key: SessionKey, template: string | undefined, signal: AbortSignal): Promise<CodeSession | { readonly unavailable: string }>;
}
