import type { ExecutionRequest, ExecutionResult } from '@etude/contracts/sandbox';

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
