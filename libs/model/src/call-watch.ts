export interface CallLimits {
  /** Longest silence of the server, before and inside its answer. */
  readonly idleTimeoutMs: number;
  /** From the request to the end of its answer. */
  readonly callTimeoutMs: number;
}

/** Ends one HTTP exchange when its caller aborts, the server falls silent, or it takes too long. */
export class CallWatch {
  /** Why the exchange was ended here; null where it was not, or by the caller. */
  expired: 'idle' | 'call' | null = null;
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #idle: NodeJS.Timeout;
  readonly #call: NodeJS.Timeout;
  readonly #abort = () => this.#controller.abort(this.#caller.reason);

  constructor(caller: AbortSignal, limits: CallLimits) {
    this.#caller = caller;
    this.#idle = setTimeout(() => this.#expire('idle'), limits.idleTimeoutMs);
    this.#call = setTimeout(() => this.#expire('call'), limits.callTimeoutMs);
    caller.addEventListener('abort', this.#abort, { once: true });
    if (caller.aborted) this.#abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Bytes came. */
  touch(): void {
    this.#idle.refresh();
  }

  end(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#call);
    this.#caller.removeEventListener('abort', this.#abort);
  }

  #expire(why: 'idle' | 'call'): void {
    this.expired = why;
    this.#controller.abort();
  }
}
