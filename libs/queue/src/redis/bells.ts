import type { Redis } from 'ioredis';
import { reportOutages } from './redis.js';

/** A missed message (a connection that died unnoticed) costs at most this long. */
const RING_AT_LEAST_EVERY_MS = 15_000;

/** Rings when a channel was published to. Holds no messages, only whether there was one. */
export interface Bell {
  /** Resolves at once if it rang since the last wait; and now and then without a reason. */
  rung(signal: AbortSignal): Promise<void>;
  release(): void;
}

/** One subscriber connection for any number of waiters on any number of channels. Opened with the first, kept from then on. */
export class Bells {
  readonly #waiting = new Map<string, Set<ChannelBell>>();
  #subscriber: Redis | null = null;

  constructor(private readonly redis: Redis) {}

  /** Resolves once the subscription stands: what is published from now on rings. */
  async listen(channel: string): Promise<Bell> {
    const subscriber = (this.#subscriber ??= this.#connect());
    const bell = new ChannelBell(() => this.#release(channel, bell));
    const bells = this.#waiting.get(channel) ?? new Set();
    this.#waiting.set(channel, bells.add(bell));
    try {
      await subscriber.subscribe(channel);
    } catch (error) {
      bell.release();
      throw error;
    }
    return bell;
  }

  #connect(): Redis {
    const subscriber = this.redis.duplicate({ maxRetriesPerRequest: null, commandTimeout: undefined });
    reportOutages(subscriber);
    subscriber.on('message', (channel: string) => this.#waiting.get(channel)?.forEach((bell) => bell.ring()));
    // Subscribed again by itself; what was published meanwhile was missed.
    subscriber.on('ready', () => this.#waiting.forEach((bells) => bells.forEach((bell) => bell.ring())));
    this.redis.once('end', () => subscriber.disconnect());
    return subscriber;
  }

  #release(channel: string, bell: ChannelBell): void {
    const bells = this.#waiting.get(channel);
    if (!bells?.delete(bell) || bells.size > 0) return;
    this.#waiting.delete(channel);
    // The connection is going away, or the channel stays subscribed until the next release: harmless both ways.
    this.#subscriber?.unsubscribe(channel).catch(() => undefined);
  }
}

class ChannelBell implements Bell {
  #rang = false;
  #wake: (() => void) | null = null;

  constructor(readonly release: () => void) {}

  ring(): void {
    this.#rang = true;
    this.#wake?.();
  }

  async rung(signal: AbortSignal): Promise<void> {
    if (!this.#rang && !signal.aborted) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, RING_AT_LEAST_EVERY_MS);
        signal.addEventListener('abort', this.#wakeNow, { once: true });
      });
      clearTimeout(timer);
      signal.removeEventListener('abort', this.#wakeNow);
      this.#wake = null;
    }
    this.#rang = false;
  }

  readonly #wakeNow = () => this.#wake?.();
}

const BELLS = new WeakMap<Redis, Bells>();

/** The bells of a connection; closed with it. */
export function bellsOf(redis: Redis): Bells {
  const known = BELLS.get(redis);
  if (known) return known;
  const bells = new Bells(redis);
  BELLS.set(redis, bells);
  return bells;
}
