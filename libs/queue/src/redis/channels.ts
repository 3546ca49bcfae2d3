import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { reportOutages } from './redis.js';

/** Hears a message of a channel; null where messages may have been missed, since the connection is new. */
export type ChannelListener = (message: string | null) => void;

/** One subscriber connection for any number of listeners on any number of channels. Opened with the first, kept from then on. */
export class Channels {
  readonly #listeners = new EventEmitter().setMaxListeners(0);
  #subscriber: Redis | null = null;

  constructor(private readonly redis: Redis) {}

  /** Resolves once the subscription stands: every later message is heard. @returns a function that ends it */
  async listen(channel: string, listener: ChannelListener): Promise<() => void> {
    const subscriber = (this.#subscriber ??= this.#connect());
    this.#listeners.on(channel, listener);
    try {
      await subscriber.subscribe(channel);
    } catch (error) {
      this.#release(channel, listener);
      throw error;
    }
    return () => this.#release(channel, listener);
  }

  #connect(): Redis {
    const subscriber = this.redis.duplicate({ maxRetriesPerRequest: null, commandTimeout: undefined });
    reportOutages(subscriber);
    subscriber.on('message', (channel: string, message: string) => this.#listeners.emit(channel, message));
    // ioredis subscribes again by itself.
    subscriber.on('ready', () => this.#listeners.eventNames().forEach((channel) => this.#listeners.emit(channel, null)));
    this.redis.once('end', () => subscriber.disconnect());
    return subscriber;
  }

  #release(channel: string, listener: ChannelListener): void {
    this.#listeners.off(channel, listener);
    if (this.#listeners.listenerCount(channel) > 0) return;
    // The connection is going away, or the channel stays subscribed until the next release: harmless both ways.
    this.#subscriber?.unsubscribe(channel).catch(() => undefined);
  }
}

const CHANNELS = new WeakMap<Redis, Channels>();

/** The channels of a connection; closed with it. */
export function channelsOf(redis: Redis): Channels {
  const known = CHANNELS.get(redis) ?? new Channels(redis);
  CHANNELS.set(redis, known);
  return known;
}

/**
 * News of tasks or executions on one channel, whose messages are `<tenant>/<id>`. A message carries no data and may be lost with its
 * connection: what it tells of is stored, and read again after every reconnect.
 */
export class MemberBus {
  readonly #listeners = new EventEmitter().setMaxListeners(0);
  #subscribed: Promise<unknown> | null = null;

  constructor(
    private readonly redis: Redis,
    private readonly channel: string,
  ) {}

  /** Resolves once messages are heard; waits for Redis. */
  async ready(): Promise<void> {
    await (this.#subscribed ??= channelsOf(this.redis).listen(this.channel, (member) => {
      if (member !== null) this.#listeners.emit(member, true);
      else for (const each of this.#listeners.eventNames()) this.#listeners.emit(each, false);
    }));
  }

  /** @param hear true for a message, false for a new connection @returns a function that ends it */
  on(member: string, hear: (isTold: boolean) => void): () => void {
    this.#listeners.on(member, hear);
    return () => void this.#listeners.off(member, hear);
  }
}

/** Remembers whether anything was published to a channel. */
export class Bell {
  #rang = false;
  #wake: (() => void) | null = null;

  /** @param everyMs a lost message (a connection that died unnoticed) costs at most this long */
  constructor(private readonly everyMs: number) {}

  readonly ring = (): void => {
    this.#rang = true;
    this.#wake?.();
  };

  /** Resolves at once if it rang since the last wait, and now and then without a reason. */
  async rung(signal: AbortSignal): Promise<void> {
    if (!this.#rang && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const timer = setTimeout(resolve, this.everyMs);
      const onAbort = () => resolve();
      signal.addEventListener('abort', onAbort, { once: true });
      await promise;
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      this.#wake = null;
    }
    this.#rang = false;
  }
}
