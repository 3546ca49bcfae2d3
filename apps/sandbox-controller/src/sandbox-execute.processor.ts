import { errorDetails, EtudeError } from '@etude/contracts/errors';
import type { SandboxExecute } from '@etude/contracts/queues';
import { type ExecutionResult, RETRYABLE_EXITS } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { watchCancel } from '@etude/queue/redis/channels';
import type { RedisKeys } from '@etude/queue/redis/keys';
import type { connectRedis } from '@etude/queue/redis/redis';
import type { JobContext, JobHandler } from '@etude/queue/jobs/consumer';
import { ExecutionStore, type StoredExecution } from '@etude/queue/executions/executions';
import { unmeasuredRun } from '@etude/sandbox/driven-sandboxes';

/** The result of the execution. Throws if the infrastructure failed a run, except at the last attempt: then the failure is the result. */
async function resultOf(
  sandboxes: Sandboxes,
  { request }: StoredExecution,
  { isLastAttempt }: JobContext,
  signal: AbortSignal,
): Promise<ExecutionResult> {
  const { executionId } = request;
  try {
    const result = await sandboxes.execute(request, signal);
    const lost = result.runs.find(({ exit }) => RETRYABLE_EXITS.has(exit));
    if (isLastAttempt || !lost) return result;
    const message = `execution ${executionId} ended with "${lost.exit}". Its code is not at fault, so the execution is retried.`;
    throw new EtudeError('SANDBOX_UNAVAILABLE', message);
  } catch (error) {
    const exit = [...RETRYABLE_EXITS].find((known) => known === errorDetails(error).metadata?.exit);
    if (!isLastAttempt || exit === undefined) throw error;
    return { executionId, runs: [unmeasuredRun(exit, 'SandboxUnavailable', (error as Error).message)] };
  }
}

/**
 * Runs one stored execution and stores its result. Runs nothing for an execution that has a result or was cancelled.
 *
 * @throws EtudeError NOT_FOUND for an execution that is no longer stored; SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY, retried by the queue
 */
export function sandboxExecuteProcessor(
  sandboxes: Sandboxes,
  { redis, keys }: { readonly redis: ReturnType<typeof connectRedis>; readonly keys: RedisKeys },
): JobHandler<typeof SandboxExecute.payload, typeof SandboxExecute.result> {
  const executions = new ExecutionStore(redis, keys);
  return async ({ tenant, executionId }, context) => {
    const cancelled = new AbortController();
    const isCancelled = () => executions.cancelRequested(tenant, executionId);
    using watching = watchCancel(redis, keys.cancelExecution(tenant, executionId), isCancelled, () => cancelled.abort());
    try {
      const [stored] = await Promise.all([executions.load(tenant, executionId), watching.ready]);
      if (!stored) throw new EtudeError('NOT_FOUND', `execution ${executionId} is no longer stored; request it again`);
      if (stored.result) return { executionId };
      const result = await resultOf(sandboxes, stored, context, AbortSignal.any([context.signal, cancelled.signal]));
      await executions.save(tenant, executionId, result);
    } catch (error) {
      if (!cancelled.signal.aborted) throw error;
    }
    return { executionId };
  };
}
