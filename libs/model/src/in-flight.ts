import { abortError } from '@etude/contracts/errors';

/** Bounds how many calls run at once; the others wait in order. */
export class InFlight {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(max: number) {
    this.#free = max;
  }

  /** @throws AbortError when `signal` aborts while the task waits */
  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (signal.aborted) throw abortError(signal);
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    try {
      return await task();
    } finally {
      const [next] = this.#waiting;
      // The next call in line takes the place of the one that ended.
      if (next) next();
      else this.#free++;
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const take = () => {
      this.#waiting.delete(take);
      resolve();
    };
    const giveUp = () => {
      this.#waiting.delete(take);
      reject(abortError(signal));
    };
    this.#waiting.add(take);
    signal.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
  }
}
