import { setTimeout as sleep } from 'node:timers/promises';
import { isAnswered, isBusy, isCancelled, isUnavailable } from '../grpc-errors.js';

/** How long the other side may stay away before a command gives up. */
export const AWAY_MAX_MS = 60_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 3_000;

/** Who is away, in words. A gateway that answers knows of a controller that does not. */
export const awayText = (error: unknown): string =>
  isBusy(error)
    ? 'the gateway works on as many calls as it may; trying again for a minute'
    : `${isAnswered(error) ? 'the controller of the sandbox' : 'the gateway'} is away; trying again for a minute`;

/** Rides out a gateway, or a sandbox's controller, that is away or has too much to do for a while. */
export class RideOut {
  #waitMs = FIRST_WAIT_MS;
  #since: number | null = null;

  /** @param onAway called when the connection broke, and with null once it works again */
  constructor(
    private readonly signal: AbortSignal,
    private readonly onAway: (error: Error | null) => void = () => undefined,
    private readonly awayMaxMs = AWAY_MAX_MS,
  ) {}

  /** It works, or works again. */
  works(): void {
    if (this.#since !== null) this.onAway(null);
    this.#since = null;
    this.#waitMs = FIRST_WAIT_MS;
  }

  /** Waits a little, where trying again can help. @throws the error where it can't, or it went on for too long */
  async wait(error: unknown): Promise<void> {
    this.signal.throwIfAborted();
    if (!isUnavailable(error) && !isCancelled(error)) throw error;
    if (this.#since === null) this.onAway(error as Error);
    this.#since ??= performance.now();
    if (performance.now() - this.#since > this.awayMaxMs) throw error;
    await sleep(this.#waitMs, undefined, { signal: this.signal });
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
  }
}

/** Asks again while the other side is away or busy; for calls that do no harm when they are repeated. */
export async function ridingOut<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  const ride = new RideOut(signal, undefined, 10_000);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      await ride.wait(error);
    }
  }
}
