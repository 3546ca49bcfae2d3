export interface LineLimits {
  readonly waitingMax: number;
  readonly waitMs: number;
  /** Makes the error for a caller that has waited `waitMs` or found the line full. `before`: number of callers ahead of it. */
  readonly refusal: (before: number) => Error;
}

/** Callers that wait for a value, first come, first served. */
export class WaitingLine<T> {
  private readonly waiting: Array<PromiseWithResolvers<T>> = [];

  constructor(private readonly limits: LineLimits) {}

  get length(): number {
    return this.waiting.length;
  }

  /**
   * @param first whether to wait ahead of all others, for a caller whose value turned out to be unusable
   * @throws the error of `refusal`; the signal's reason when it aborts
   */
  wait(signal: AbortSignal, first = false): Promise<T> {
    if (!first && this.waiting.length >= this.limits.waitingMax) return Promise.reject(this.limits.refusal(this.waiting.length));
    const { waitMs, refusal } = this.limits;
    const waiting = Promise.withResolvers<T>();
    const abort = () => this.drop(waiting, () => signal.reason as Error);
    const timer = setTimeout(() => this.drop(waiting, refusal), waitMs);
    signal.addEventListener('abort', abort, { once: true });
    if (first) this.waiting.unshift(waiting);
    else this.waiting.push(waiting);
    return waiting.promise.finally(() => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    });
  }

  /** Gives the value to the caller that has waited longest. */
  give(value: T): void {
    this.waiting.shift()?.resolve(value);
  }

  /** Rejects all waiting callers. */
  refuse(error: () => Error): void {
    for (const waiting of this.waiting.splice(0)) waiting.reject(error());
  }

  private drop(waiting: PromiseWithResolvers<T>, why: (before: number) => Error): void {
    const before = this.waiting.indexOf(waiting);
    if (before < 0) return;
    this.waiting.splice(before, 1);
    waiting.reject(why(before));
  }
}
