import { EtudeError } from '@etude/contracts/errors';

/** So many at once, the others wait in order. */
export class Slots {
  private taken = 0;
  private readonly waiting: Array<() => void> = [];

  constructor(
    private readonly max: number,
    private readonly waitingMax: number,
  ) {}

  /**
   * Resolves with what gives the slot back; call it once.
   *
   * @throws EtudeError SANDBOX_CAPACITY when too many wait already; the signal's reason when it aborts first
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.taken < this.max) this.taken += 1;
    else await this.wait(signal);
    return () => this.leave();
  }

  private wait(signal: AbortSignal): Promise<void> {
    if (this.waiting.length >= this.waitingMax) {
      throw new EtudeError(
        'SANDBOX_CAPACITY',
        `${this.max} sandboxes are running and ${this.waiting.length} executions wait; try again later`,
      );
    }
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener('abort', abandon);
        resolve();
      };
      const abandon = () => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abandon, { once: true });
      this.waiting.push(enter);
    });
  }

  /** The slot passes to who waits longest. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.taken -= 1;
  }
}
