import { setTimeout as sleepFor } from 'node:timers/promises';
import { errorDetails } from '@etude/contracts/errors';
import { kubeReason, kubeStatus } from './kube-error.js';

export interface KubeRetryPolicy {
  /** Tries in all, the first included. */
  readonly attemptsMax: number;
  /** First wait; doubles with each try, half of it at random. */
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
  /** A longer Retry-After is cut to this. */
  readonly retryAfterMaxMs: number;
}

export const KUBE_RETRY_POLICY: KubeRetryPolicy = { attemptsMax: 5, backoffMinMs: 100, backoffMaxMs: 5_000, retryAfterMaxMs: 30_000 };

/** No answer, told to come back, or the server's own failure: the same again may succeed. */
export function isTransient(error: unknown): boolean {
  const status = kubeStatus(error);
  return status !== null && (status === 0 || status === 429 || status >= 500) && kubeReason(error) !== 'UntrustedCertificate';
}

/** @param made tries so far, at least 1 @param random 0 to 1 */
export function backoffMs(made: number, error: unknown, policy: KubeRetryPolicy, random = Math.random()): number {
  const backoff = Math.min(policy.backoffMaxMs, policy.backoffMinMs * 2 ** Math.min(made - 1, 30)) * (0.5 + random / 2);
  const asked = Math.min(errorDetails(error).retryAfterMs ?? 0, policy.retryAfterMaxMs);
  // Jitter on top of what was asked, or all who were turned away come back at once.
  return asked > 0 ? asked + Math.min(backoff, asked) / 2 : backoff;
}

/** What an aborted call throws, whatever the caller gave as reason. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  const error = new Error('the call of the Kubernetes API was aborted', { cause: reason });
  error.name = 'AbortError';
  return error;
}

/** @throws an AbortError as soon as `signal` aborts */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleepFor(ms, undefined, { signal });
  } catch (error) {
    throw signal.aborted ? abortError(signal) : error;
  }
}

/** Repeats `attempt` while `retry` says so. @throws the last error, or an AbortError */
export async function withKubeRetries<T>(
  attempt: () => Promise<T>,
  signal: AbortSignal,
  policy = KUBE_RETRY_POLICY,
  retry: (error: unknown) => boolean = isTransient,
): Promise<T> {
  for (let made = 1; ; made++) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      if (made >= policy.attemptsMax || !retry(error)) throw error;
      await pause(backoffMs(made, error, policy), signal);
    }
  }
}

/** Lets `qps` requests through per second and `burst` at once; the others wait in order. */
export class TokenBucket {
  /** When, on the monotonic clock, the bucket will be full again. */
  #fullAt = 0;

  constructor(
    private readonly qps: number,
    private readonly burst: number,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** @returns how long whoever takes this token must wait, in ms */
  reserve(): number {
    const eachMs = 1_000 / this.qps;
    this.#fullAt = Math.max(this.#fullAt, this.now()) + eachMs;
    return Math.max(0, this.#fullAt - this.now() - eachMs * this.burst);
  }

  async take(signal: AbortSignal): Promise<void> {
    const waitMs = this.reserve();
    if (waitMs > 0) await pause(waitMs, signal);
  }
}
