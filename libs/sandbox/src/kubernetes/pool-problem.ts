import { errorDetails, EtudeError, type ErrorCode } from '@etude/contracts/errors';
import type { ExitReason } from '@etude/contracts/sandbox';

/** Why pods can't be created or don't start. */
export interface PoolProblem {
  readonly exit: ExitReason;
  readonly message: string;
  readonly retryAfterMs?: number;
}

/** Out of what the API server answered to a creation. */
export function creationProblem(error: unknown): PoolProblem {
  const { message } = error as Error;
  const { metadata, retryAfterMs } = errorDetails(error);
  const exit = (metadata?.exit ?? 'infra') as ExitReason;
  return { exit, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** What a claim is told that waited for nothing. Room that is lacking is SANDBOX_CAPACITY, whatever else SANDBOX_UNAVAILABLE. */
export function claimRefusal(template: string, max: number, before: number, problem: PoolProblem | null): EtudeError {
  const exit: ExitReason = problem?.exit ?? 'capacity';
  const code: ErrorCode = exit === 'capacity' ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE';
  const why = problem
    ? `no sandbox of the template "${template}" can be started: ${problem.message}`
    : `none of at most ${max} sandboxes of the template "${template}" became free; try again later, or raise its warm.max`;
  return new EtudeError(code, `${why} (${before} claims wait before this one)`, {
    ...(problem?.retryAfterMs === undefined ? {} : { retryAfterMs: problem.retryAfterMs }),
    metadata: { exit, position: String(before), limit: String(max), template },
  });
}
