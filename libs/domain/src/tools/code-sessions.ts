import type { Display, RunResult, SandboxFile } from '@etude/contracts/sandbox';
import type { SessionKey } from './tool-ports.js';

/** How a cell ended. Long streams are cut in the middle. `displays` are the values it showed, in order. */
export interface CellOutcome extends Pick<RunResult, 'exit' | 'exitCode' | 'signal' | 'stdout' | 'stderr' | 'error'> {
  readonly displays: readonly Display[];
  /** The interpreter was restarted. Its variables are lost, files are kept. */
  readonly stateLost: boolean;
}

/** A sandbox that keeps variables and files between calls. */
export interface CodeSession {
  /** "sandboxes/{sandbox}", the name under which files are uploaded, downloaded and deleted. */
  readonly sandbox: string;
  /** As in `ExecutionRequest`. */
  readonly template: string;
  /** An earlier sandbox of this session has ended, and its contents are lost. */
  readonly isReplaced: boolean;
  /**
   * Runs Python in the session's interpreter. The same `executionId` again returns the first outcome and runs nothing.
   *
   * @throws EtudeError FAILED_PRECONDITION while another cell runs; an AbortError when `signal` aborts, after the cell was stopped
   */
  run(cell: { readonly executionId: string; readonly code: string }, signal: AbortSignal): Promise<CellOutcome>;
  /**
   * Runs the work of concurrent calls one after another, in the order in which they came.
   *
   * @throws the signal's reason if it aborts before the call's turn
   */
  inTurn<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Paths below the working directory, sorted; the first 1,000. */
  files(signal: AbortSignal): Promise<readonly string[]>;
  /** The contents of these files; null if they have more than 8 MiB together. @throws EtudeError NOT_FOUND */
  read(paths: readonly string[], signal: AbortSignal): Promise<readonly SandboxFile[] | null>;
}

/** Sandboxes of tool sessions. Each ends by itself some time after its last call. */
export interface CodeSessions {
  /**
   * Returns the session's sandbox, or opens a sandbox from `template`. Returns `unavailable` with the reason if none can be opened.
   *
   * @param key its `session` may be the id of an open sandbox of the tenant. That sandbox is then used and assigned to the key's agent
   * and user. Its expiry does not change
   * @throws EtudeError FAILED_PRECONDITION if that sandbox has ended or belongs to another agent or user; SANDBOX_UNAVAILABLE
   */
  open(key: SessionKey, template: string | undefined, signal: AbortSignal): Promise<CodeSession | { readonly unavailable: string }>;
}
