import { abortError } from './abort.js';

/** Bounds how many calls run at once; the others wait in order. */
export class InFlight {
  readonly #max: number;
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Resolves with the function that gives the place back. @throws AbortError when `signal` aborts while waiting. */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw abortError(signal);
    if (this.#running < this.#max) this.#running++;
    else await this.#turn(signal);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#leave();
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(abortError(signal));
      };
      this.#waiting.push(take);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The place goes to the next in line, so the number running stays. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running--;
  }
}
