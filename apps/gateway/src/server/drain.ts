import { EtudeError } from '@etude/contracts/errors';

/** The end of this process, as seen by calls that would otherwise go on: watches and waits. */
export class Drain {
  readonly #controller = new AbortController();

  /** Aborts with SHUTTING_DOWN once the server closes. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  begin(): void {
    const reason = new EtudeError(
      'SHUTTING_DOWN',
      'This gateway is shutting down; call again, with the last resume_token where you were watching.',
      { retryAfterMs: 500 },
    );
    this.#controller.abort(reason);
  }
}
