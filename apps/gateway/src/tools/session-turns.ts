import { unlessAborted } from '../calls/local-client.js';

/** Runs calls with the same name one at a time, in order, within this process. */
export class SessionTurns {
  /** By name; resolves after the last call. */
  readonly #last = new Map<string, Promise<void>>();

  /** @throws the signal's reason, if it aborts before the turn comes */
  async take<T>(name: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const turn = this.#last.get(name) ?? Promise.resolve();
    const over = Promise.withResolvers<void>();
    const last = turn.then(() => over.promise);
    this.#last.set(name, last);
    try {
      await unlessAborted(turn, signal);
      return await work();
    } finally {
      over.resolve();
      if (this.#last.get(name) === last) this.#last.delete(name);
    }
  }
}
