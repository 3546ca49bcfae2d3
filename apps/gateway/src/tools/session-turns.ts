import { EtudeError } from '@etude/contracts/errors';
import { unlessAborted } from '../calls/local-client.js';

/** Maximum of calls waiting behind the running one. */
const WAITING_MAX = 16;
const RETRY_AFTER_MS = 1_000;

interface Line {
  /** Calls with this name, including the running one. */
  calls: number;
  /** Resolves after the last of them. */
  last: Promise<void>;
}

/** Runs calls with the same name one at a time, in order, within this process. */
export class SessionTurns {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly waitingMax = WAITING_MAX) {}

  /** @throws EtudeError SANDBOX_CAPACITY if too many calls wait; the signal's reason, if it aborts before the turn comes */
  async take<T>(name: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const line = this.#lines.get(name) ?? { calls: 0, last: Promise.resolve() };
    if (line.calls > this.waitingMax) {
      const message = `${name} runs one call at a time, and ${line.calls - 1} wait already; nothing of this one ran. Send it again once some have ended, or use another session.`;
      throw new EtudeError('SANDBOX_CAPACITY', message, { retryAfterMs: RETRY_AFTER_MS });
    }
    this.#lines.set(name, line);
    line.calls += 1;
    const turn = line.last;
    const over = Promise.withResolvers<void>();
    line.last = turn.then(() => over.promise);
    try {
      await unlessAborted(turn, signal);
      return await work();
    } finally {
      over.resolve();
      line.calls -= 1;
      if (line.calls === 0) this.#lines.delete(name);
    }
  }
}
