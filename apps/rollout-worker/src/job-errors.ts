import { errorCode, EtudeError, isAbort, isRetryable } from '@etude/contracts/errors';
import { isConnectionError } from '@etude/queue/redis/redis';

/** A lost connection says nothing about the task: it goes on when Redis is back. */
export function jobError(error: unknown): unknown {
  if (!isConnectionError(error)) return error;
  return new EtudeError(
    'QUEUE_UNAVAILABLE',
    `Redis went away during the rollout (${(error as Error).message}); it goes on when Redis is back.`,
    {},
    { cause: error },
  );
}

/** Whether the queue will not try again after this error, so that the task ends with it. */
export function givesUp(error: unknown, job: { readonly isLastAttempt: boolean; readonly signal: AbortSignal }): boolean {
  if (job.signal.aborted || isAbort(error) || isConnectionError(error) || errorCode(error) === 'JOURNAL_FENCED') return false;
  return job.isLastAttempt || !isRetryable(error);
}
