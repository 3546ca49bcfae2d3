import { setTimeout as sleep } from 'node:timers/promises';
import type { Cli } from './cli.js';
import { answeredCode, isCancelled, isUnavailable } from './errors.js';

/** How long a stream rides out a gateway that is away. */
export const AWAY_MAX_MS = 60_000;
const CALL_AWAY_MAX_MS = 10_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 3_000;
const POLL_MS = 300;

/** The settings of one call. @param leastMs for a call that takes longer than most */
export const callSettings = (cli: Pick<Cli, 'callTimeoutMs' | 'signal'>, leastMs = 0) => ({
  timeoutMs: Math.max(cli.callTimeoutMs, leastMs),
  signal: cli.signal,
});

/** Names who is away. A gateway that answers reports a controller that doesn't. */
export function awayText(error: unknown): string {
  return `${answeredCode(error) !== null ? 'the controller of the sandbox' : 'the gateway'} is away; trying again for a minute`;
}

/** Rides out a gateway or a controller that is away or overloaded: the pauses between tries grow to 3 s. */
export class RideOut {
  #waitMs = FIRST_WAIT_MS;
  #since: number | null = null;

  /** @param onAway called when the connection broke, and with null once it works again */
  constructor(
    private readonly signal: AbortSignal,
    private readonly onAway: (error: Error | null) => void = () => undefined,
    private readonly awayMaxMs = AWAY_MAX_MS,
  ) {}

  works(): void {
    if (this.#since !== null) this.onAway(null);
    this.#since = null;
    this.#waitMs = FIRST_WAIT_MS;
  }

  /** Waits before the next try. @throws the error where another try can't help, or `awayMaxMs` is over */
  async wait(error: unknown, canHelp = isUnavailable(error) || isCancelled(error)): Promise<void> {
    this.signal.throwIfAborted();
    if (!canHelp) throw error;
    if (this.#since === null) this.onAway(error as Error);
    this.#since ??= performance.now();
    if (performance.now() - this.#since > this.awayMaxMs) throw error;
    await sleep(this.#waitMs, undefined, { signal: this.signal });
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
  }
}

/** Repeats a call while the other side is away or overloaded. The call must be harmless when it is repeated. */
export async function ridingOut<T>(signal: AbortSignal, call: () => Promise<T>, awayMaxMs = CALL_AWAY_MAX_MS): Promise<T> {
  const ride = new RideOut(signal, undefined, awayMaxMs);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      await ride.wait(error);
    }
  }
}

/**
 * Every event of a stream until the last one. A connection that breaks is taken up again behind the last event.
 *
 * @param resumeToken of the last event that was seen; '' for everything
 * @throws what `ride` gives up with
 */
export async function* resuming<Event extends { readonly resumeToken: string }>(
  ride: RideOut,
  resumeToken: string,
  { open, isLast }: { open: (resumeToken: string) => AsyncIterable<Event>; isLast: (event: Event) => boolean },
): AsyncGenerator<Event, void> {
  for (let token = resumeToken; ;) {
    let why: unknown = null;
    try {
      for await (const event of open(token)) {
        ride.works();
        yield event;
        token = event.resumeToken;
        if (isLast(event)) return;
      }
    } catch (error) {
      why = error;
    }
    if (why === null) await ride.wait(new Error('the gateway ended the stream before its last event'), true);
    else await ride.wait(why);
  }
}

const PAGE_MAX = 200;

/** Every page up to `limit`. The token of the last page says whether there is more. */
export async function inPages<T>(
  limit: number,
  ask: (page: { readonly pageSize: number; readonly pageToken: string }) => Promise<{ items: readonly T[]; nextPageToken: string }>,
): Promise<{ readonly items: readonly T[]; readonly nextPageToken: string }> {
  const items: T[] = [];
  for (let pageToken = ''; ;) {
    const page = await ask({ pageToken, pageSize: Math.min(limit - items.length, PAGE_MAX) });
    items.push(...page.items);
    pageToken = page.nextPageToken;
    if (pageToken === '' || items.length >= limit) return { items, nextPageToken: pageToken };
  }
}

/** Asks again and again until `isOver`. Shows `status` meanwhile. */
export async function poll<T>(
  { out, signal }: Pick<Cli, 'out' | 'signal'>,
  first: T,
  { isOver, ask, status }: { isOver: (now: T) => boolean; ask: () => Promise<T>; status: (now: T) => string },
): Promise<T> {
  let now = first;
  while (!isOver(now)) {
    out.status(status(now));
    await sleep(POLL_MS, undefined, { signal });
    now = await ridingOut(signal, ask);
  }
  out.status('');
  return now;
}

/** Does work that Ctrl-C may end, and then says how to go on. */
export async function sayingHowToGoOn<T>(
  { signal, out }: Pick<Cli, 'signal' | 'out'>,
  work: () => Promise<T>,
  words = 'interrupted; run the same again to go on',
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted) {
      out.status('');
      out.note(words);
    }
    throw error;
  }
}
