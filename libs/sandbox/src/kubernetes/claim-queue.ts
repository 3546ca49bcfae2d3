import { errorDetails, EtudeError } from '@etude/contracts/errors';
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
  const code = exit === 'capacity' ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE';
  const why = problem
    ? `no sandbox of the template "${template}" can be started: ${problem.message}`
    : `none of at most ${max} sandboxes of the template "${template}" became free; try again later, or raise its warm.max`;
  return new EtudeError(code, `${why} (${before} claims wait before this one)`, {
    ...(problem?.retryAfterMs === undefined ? {} : { retryAfterMs: problem.retryAfterMs }),
    metadata: { exit, position: String(before), limit: String(max), template },
  });
}

interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
  readonly onQueued: ((before: number) => void) | undefined;
  told: number;
}

export interface QueueLimits {
  readonly waitingMax: number;
  readonly waitMs: number;
  /** Why nothing came: for the one that has waited long enough, or is one too many, with so many before it. */
  readonly refusal: (before: number) => Error;
}

/** Claims that wait for a pod, first come, first served. */
export class ClaimQueue<T> {
  private readonly waiting: Array<Waiting<T>> = [];

  constructor(private readonly limits: QueueLimits) {}

  get length(): number {
    return this.waiting.length;
  }

  /**
   * @param first before all others: it has had its turn, and what it got was no good
   * @throws what `refusal` says; the signal's reason when it aborts
   */
  wait(signal: AbortSignal, onQueued?: (before: number) => void, first = false): Promise<T> {
    if (!first && this.waiting.length >= this.limits.waitingMax) return Promise.reject(this.limits.refusal(this.waiting.length));
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      };
      const settled =
        <A>(settle: (value: A) => void) =>
        (value: A) => {
          leave();
          settle(value);
        };
      const waiting: Waiting<T> = { resolve: settled(resolve), reject: settled(reject), onQueued, told: -1 };
      const abort = () => this.drop(waiting, () => signal.reason as Error);
      const timer = setTimeout(() => this.drop(waiting, this.limits.refusal), this.limits.waitMs);
      signal.addEventListener('abort', abort, { once: true });
      if (first) this.waiting.unshift(waiting);
      else this.waiting.push(waiting);
      this.tell();
    });
  }

  /** @returns whether somebody waited for it */
  give(value: T): boolean {
    const next = this.waiting.shift();
    next?.resolve(value);
    this.tell();
    return next !== undefined;
  }

  /** Tells those behind the first `keep` that nothing comes. */
  refuse(keep: number, error: () => Error): void {
    for (const waiting of this.waiting.splice(keep)) waiting.reject(error());
  }

  private drop(waiting: Waiting<T>, why: (before: number) => Error): void {
    const before = this.waiting.indexOf(waiting);
    if (before < 0) return;
    this.waiting.splice(before, 1);
    waiting.reject(why(before));
    this.tell();
  }

  private tell(): void {
    for (const [before, waiting] of this.waiting.entries()) {
      if (waiting.told === before) continue;
      waiting.told = before;
      waiting.onQueued?.(before);
    }
  }
}
