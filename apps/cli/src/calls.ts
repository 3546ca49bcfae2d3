import { setTimeout as sleep } from 'node:timers/promises';
import type { Cli } from './cli.js';
import { isCancelled, isUnavailable } from './errors.js';

/** How long a stream is retried while the gateway is unreachable, in ms. */
export const AWAY_MAX_MS = 60_000;
const CALL_AWAY_MAX_MS = 10_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 3_000;
const POLL_MS = 300;

/** Timeout and abort signal of one call. @param leastMs least timeout, for calls that take longer than most */
export const callSettings = ({ globals, signal }: Pick<Cli, 'globals' | 'signal'>, leastMs = 0) => ({
  timeoutMs: Math.max(globals.timeout, leastMs),
  signal,
});

/** Paces the retries while a gateway or a controller is unreachable or overloaded. The pauses grow from 100 ms to 3 s. */
export class RideOut {
  #waitMs = FIRST_WAIT_MS;
  #since: number | null = null;

  constructor(
    private readonly signal: AbortSignal,
    private readonly note: (text: string) => void = () => undefined,
    private readonly awayMaxMs = AWAY_MAX_MS,
  ) {}

  works(): void {
    if (this.#since !== null) this.note('(the gateway answers again)');
    this.#since = null;
    this.#waitMs = FIRST_WAIT_MS;
  }

  /** Waits before the next retry. @throws the given error if a retry can't help or `awayMaxMs` has passed */
  async wait(error: unknown, canHelp = isUnavailable(error) || isCancelled(error)): Promise<void> {
    this.signal.throwIfAborted();
    if (!canHelp) throw error;
    if (this.#since === null) this.note(`(lost the gateway: ${(error as Error).message}; retrying)`);
    this.#since ??= performance.now();
    if (performance.now() - this.#since > this.awayMaxMs) throw error;
    await sleep(this.#waitMs, undefined, { signal: this.signal });
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
  }
}

/** Retries a call while the server is unreachable or overloaded. The call must be idempotent. */
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
 * Yields every event of a stream up to the last event. After a broken connection, the stream is reopened after the last event seen.
 *
 * @param resumeToken token of the last event that was seen; '' starts at the first event
 * @throws the error with which `ride` gives up
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

/** Reads pages until `limit` items are read. Returns the token of the next page; '' if there is none. */
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

export async function sayingHowToGoOn<T>(
  { signal, out }: Pick<Cli, 'signal' | 'out'>,
  work: () => Promise<T>,
  words = () => 'interrupted; run the same command again to continue',
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted || isUnavailable(error) || isCancelled(error)) out.note(words());
    throw error;
  } finally {
    out.status('');
  }
}
