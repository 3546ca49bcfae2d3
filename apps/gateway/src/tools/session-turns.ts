import { EtudeError } from '@etude/contracts/errors';

/** Calls that may wait behind the one that runs. */
const WAITING_MAX = 16;
const RETRY_AFTER_MS = 1_000;

/** One call after another for each name, in the order in which they came, within this process. */
export class SessionTurns {
  /** Who waits, by name; there is a line as long as somebody has the turn. */
  readonly #lines = new Map<string, Array<() => void>>();

  constructor(private readonly waitingMax = WAITING_MAX) {}

  /**
   * @param work is told whether it had to wait
   * @throws EtudeError SANDBOX_CAPACITY where too many wait already; the signal's reason, where it aborts before the turn has come
   */
  async take<T>(name: string, work: (waited: boolean) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const line = this.#lines.get(name);
    if (line === undefined) this.#lines.set(name, []);
    else await this.#wait(name, line, signal);
    try {
      return await work(line !== undefined);
    } finally {
      const next = this.#lines.get(name)?.shift();
      if (next === undefined) this.#lines.delete(name);
      else next();
    }
  }

  #wait(name: string, line: Array<() => void>, signal: AbortSignal): Promise<void> {
    if (line.length >= this.waitingMax)
      throw new EtudeError(
        'SANDBOX_CAPACITY',
        `${name} runs one call at a time, and ${line.length} wait already; nothing of this one ran. Send it again once some have ended, or use another session.`,
        { retryAfterMs: RETRY_AFTER_MS },
      );
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const begin = () => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = () => {
      line.splice(line.indexOf(begin), 1);
      reject(signal.reason);
    };
    line.push(begin);
    signal.addEventListener('abort', leave, { once: true });
    return promise;
  }
}
