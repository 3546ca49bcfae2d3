import { abortError, EtudeError, errorCode, errorDetails, isRetryable } from '@etude/contracts/errors';
import { setTimeout as sleepFor } from 'node:timers/promises';

export interface RetryPolicy {
  readonly attemptsMax: number;
  /** The longest sum of the waits between calls. */
  readonly waitTotalMaxMs: number;
}

/** The most calls if answers are empty or cut. It is low, because each such answer costs money. */
const ANSWER_ATTEMPTS_MAX = 3;
/** The first wait. It doubles with each attempt, and half of it is random. */
const BACKOFF_FIRST_MS = 250;
const BACKOFF_MAX_MS = 20_000;
/** A longer Retry-After is shortened to this. */
const RETRY_AFTER_MAX_MS = 60_000;

/** Tests replace this, so that they don't wait. */
export interface RetryTimers {
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  random(): number;
}

const REAL_TIMERS: RetryTimers = { sleep: (ms, signal) => sleepFor(ms, undefined, { signal }), random: Math.random };

/**
 * Retries calls of a model server. All retries happen here.
 *
 * Only errors with a retryable code are retried. The wait is the error's `details.retryAfterMs`, or else an exponential backoff with
 * jitter. Attempts and waits are limited. At the limit the last error is thrown, with the number of attempts in its message.
 * @throws an AbortError as soon as `signal` aborts
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  signal: AbortSignal,
  policy: RetryPolicy,
  timers = REAL_TIMERS,
): Promise<T> {
  let waitedMs = 0;
  for (let made = 1; ; made++) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      if (!isRetryable(error)) throw error;
      const waitMs = waitAfter(made, error, timers.random());
      if (made >= attemptsFor(error, policy) || waitedMs + waitMs > policy.waitTotalMaxMs) throw givenUp(error, made, waitedMs);
      waitedMs += waitMs;
      await timers.sleep(waitMs, signal).catch(() => undefined);
      if (signal.aborted) throw abortError(signal);
    }
  }
}

function attemptsFor(error: unknown, { attemptsMax }: RetryPolicy): number {
  const isBadAnswer = errorCode(error) === 'MODEL_ANSWER_EMPTY' || errorCode(error) === 'MODEL_ANSWER_TRUNCATED';
  return isBadAnswer ? Math.min(ANSWER_ATTEMPTS_MAX, attemptsMax) : attemptsMax;
}

function waitAfter(made: number, error: unknown, random: number): number {
  const backoff = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (made - 1)) * (0.5 + random / 2);
  const asked = errorDetails(error).retryAfterMs;
  if (asked === undefined) return backoff;
  // If a server asks for a retry without a wait, only the first retry is made at once.
  return Math.max(Math.min(asked, RETRY_AFTER_MAX_MS), made === 1 ? 0 : backoff);
}

const ADVICE: Partial<Record<ReturnType<typeof errorCode>, string>> = {
  MODEL_UNAVAILABLE: 'Check that the server runs and can be reached from here.',
  MODEL_RATE_LIMITED: 'Lower ETUDE_MODEL_CONCURRENCY, raise the limit of the account, or try again later.',
  MODEL_ANSWER_EMPTY: 'Check the model; a reasoning model needs a larger limit of output tokens.',
  MODEL_ANSWER_TRUNCATED: 'Check the server, and the time limits of any proxy before it.',
};

function givenUp(error: unknown, made: number, waitedMs: number): EtudeError {
  const { message } = error as Error;
  const [code, details] = [errorCode(error), errorDetails(error)];
  const tried = made === 1 ? '' : ` Asked ${made} times, waiting ${(waitedMs / 1000).toFixed(1)} s in between.`;
  const metadata = { ...details.metadata, attempts: String(made) };
  return new EtudeError(code, `${message}${tried} ${ADVICE[code] ?? ''}`.trimEnd(), { ...details, metadata }, { cause: error });
}
