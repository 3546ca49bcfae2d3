import { EtudeError } from '@etude/contracts/errors';
import { unlessAborted } from '../calls/local-client.js';

/** Calls that may wait behind the one that runs. */
const WAITING_MAX = 16;
const RETRY_AFTER_MS = 1_000;

interface Line {
  /** Calls of this name, the running one included. */
  calls: number;
  /** Resolves once the last of them is over. */
  last: Promise<void>;
}

/** One call after another for each name, in the order in which they came, within this process. */
export class SessionTurns {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly waitingMax = WAITING_MAX) {}

  /** @throws EtudeError SANDBOX_CAPACITY where too many wait already; the signal's reason, where it aborts before the turn has come */
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
