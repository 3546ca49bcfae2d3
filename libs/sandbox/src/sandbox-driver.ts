import type { ExecutionRequest, RunResult } from '@etude/contracts/sandbox';

/** What must be settled before a sandbox exists; everything else comes with the request. */
export interface SandboxShape {
  readonly diskMiB: number;
}

/** One sandbox, bound to one claim until it is released. */
export interface ClaimedSandbox {
  /**
   * Runs the request's runs in order; `onRun` gets each result as it comes.
   *
   * @returns whether the supervisor lived to the end; false when it was lost in the middle of a run
   * @throws AbortError when `signal` aborts, after everything in the sandbox was stopped
   */
  execute(request: ExecutionRequest, onRun: (result: RunResult) => void, signal: AbortSignal): Promise<boolean>;
  /** Destroys it. Resolves when nothing of it runs any more; calling it again is fine. */
  release(): Promise<void>;
}

/**
 * Where sandboxes come from: local processes, pods.
 *
 * A claim is never handed out twice. @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY
 * Not in it: idempotence, queueing, retries.
 */
export interface SandboxDriver {
  claim(shape: SandboxShape, signal: AbortSignal): Promise<ClaimedSandbox>;
  /** Destroys every sandbox, claimed or waiting. */
  close(): Promise<void>;
}
