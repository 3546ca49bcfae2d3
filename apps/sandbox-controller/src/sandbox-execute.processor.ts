import { EtudeError } from '@etude/contracts/errors';
import type { SandboxExecute } from '@etude/contracts/queues';
import { type ExecutionResult, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { CancelBus } from '@etude/queue/cancel';
import type { JobHandler } from '@etude/queue/consumer';
import type { ExecutionStore } from '@etude/queue/executions';

export interface SandboxExecuteDeps {
  readonly sandboxes: Sandboxes;
  readonly executions: ExecutionStore;
  readonly cancels: CancelBus;
}

/** Only what the infrastructure did is worth another try; what the code did is its result. */
function throwIfRetryable({ executionId, runs }: ExecutionResult): void {
  const lost = runs.find(({ exit }) => RETRYABLE_EXITS.has(exit));
  if (lost)
    throw new EtudeError(
      'SANDBOX_UNAVAILABLE',
      `execution ${executionId} ended with "${lost.exit}", which is no fault of its code; it is tried again`,
    );
}

/**
 * Runs one stored execution and stores its result; one that ran before, or was cancelled, runs nothing.
 *
 * @throws EtudeError NOT_FOUND for an execution that is no longer kept; SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, retried by the queue
 */
export function sandboxExecuteProcessor({
  sandboxes,
  executions,
  cancels,
}: SandboxExecuteDeps): JobHandler<typeof SandboxExecute.payload, typeof SandboxExecute.result> {
  return async ({ tenant, executionId }, { signal }) => {
    const stored = await executions.load(tenant, executionId);
    if (!stored) throw new EtudeError('NOT_FOUND', `execution ${executionId} is no longer kept; ask for it again`);
    if (stored.result || stored.cancelRequested) return { executionId };
    const cancelled = new AbortController();
    const release = cancels.watch(
      'execution',
      { tenant, id: executionId },
      () => executions.cancelRequested(tenant, executionId),
      () => cancelled.abort(),
    );
    try {
      const result = await sandboxes.execute(stored.request, AbortSignal.any([signal, cancelled.signal]));
      throwIfRetryable(result);
      await executions.save(tenant, executionId, result);
    } catch (error) {
      if (!cancelled.signal.aborted) throw error;
    } finally {
      release();
    }
    return { executionId };
  };
}
