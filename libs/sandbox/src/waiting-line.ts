import { unlessAborted } from '@etude/contracts/errors';

interface LineLimits {
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

  /** @param first whether to wait ahead of all others, because an earlier value was unusable. @throws `refusal`'s error, or the signal's reason */
  async wait(signal: AbortSignal, first = false): Promise<T> {
    const { waitingMax, waitMs, refusal } = this.limits;
    if (!first && this.length >= waitingMax) throw refusal(this.length);
    const waiting = Promise.withResolvers<T>();
    if (first) this.waiting.unshift(waiting);
    else this.waiting.push(waiting);
    try {
      return await unlessAborted(waiting.promise, AbortSignal.any([signal, AbortSignal.timeout(waitMs)]));
    } catch (error) {
      const before = this.waiting.indexOf(waiting);
      // The caller was given a value at the last moment, or was refused.
      if (before < 0) return waiting.promise;
      this.waiting.splice(before, 1);
      throw signal.aborted ? error : refusal(before);
    }
  }

  give(value: T): void {
    this.waiting.shift()?.resolve(value);
  }

  refuse(error: () => Error): void {
    for (const waiting of this.waiting.splice(0)) waiting.reject(error());
  }
}
