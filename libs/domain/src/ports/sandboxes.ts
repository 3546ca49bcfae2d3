import type { ExecutionRequest, ExecutionResult } from '@etude/contracts/sandbox';

/**
 * Runs untrusted code in one fresh sandbox and destroys it on every path.
 *
 * The same `executionId` again answers with the first result and runs nothing. No two tenants use the same one.
 * @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY (system, retryable); an AbortError when `signal` aborts,
 *   after the code was stopped. What the code itself does wrong is a result, never an error.
 * Why fresh: a reused one leaks files between tenants.
 * Not in it: judging the output; interactive sessions.
 */
export interface Sandboxes {
  execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult>;
}
