import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { reportOutages, whileRedisAnswers } from './redis.js';

/** Called with each message of a channel, and with null after a reconnect, when messages may have been missed. */
export type ChannelListener = (message: string | null) => void;

/** A listener on a channel. Disposing it ends it, even before it is ready. */
export interface Listening extends Disposable {
  /** Resolves once the listener gets every later message. */
  readonly ready: Promise<void>;
}

/** One subscriber connection for all listeners on all channels. The first listener opens it, and it stays open. */
class Channels {
  readonly #listeners = new EventEmitter().setMaxListeners(0);
  #subscriber: Redis | null = null;

  constructor(private readonly redis: Redis) {}

  listen(channel: string, listener: ChannelListener): Listening {
    this.#listeners.on(channel, listener);
    const ready = (this.#subscriber ??= this.#connect()).subscribe(channel).then(() => undefined);
    // Callers that await `ready` get its error. This only avoids an unhandled rejection.
    ready.catch(() => undefined);
    return { ready, [Symbol.dispose]: () => this.#release(channel, listener) };
  }

  #connect(): Redis {
    const subscriber = this.redis.duplicate({ maxRetriesPerRequest: null, commandTimeout: undefined });
    reportOutages(subscriber);
    subscriber.on('message', (channel: string, message: string) => this.#listeners.emit(channel, message));
    // ioredis subscribes again by itself after a reconnect.
    subscriber.on('ready', () => this.#listeners.eventNames().forEach((channel) => this.#listeners.emit(channel, null)));
    // Only an unanswered command shows that the server hangs, and a subscriber sends no command of its own.
    const ping = () => void subscriber.ping().catch(() => undefined);
    const pings = setInterval(ping, this.redis.options.socketTimeout).unref();
    this.redis.once('end', () => {
      clearInterval(pings);
      subscriber.disconnect();
    });
    return subscriber;
  }

  #release(channel: string, listener: ChannelListener): void {
    this.#listeners.off(channel, listener);
    if (this.#listeners.listenerCount(channel) > 0) return;
    // A failure is harmless: the connection is closing, or the channel stays subscribed until the next release.
    this.#subscriber?.unsubscribe(channel).catch(() => undefined);
  }
}

const CHANNELS = new WeakMap<Redis, Channels>();

/** The channels of a connection. Their subscriber closes with it. */
export function channelsOf(redis: Redis): Channels {
  const known = CHANNELS.get(redis) ?? new Channels(redis);
  CHANNELS.set(redis, known);
  return known;
}

/**
 * Calls `stop` when a cancel is requested. The request is stored with the task or execution, and announced on `channel`.
 * @param isRequested reads the stored request; called now and after every reconnect
 * @returns a listener; its `ready` resolves once no cancel can be missed, or rejects with QUEUE_UNAVAILABLE
 */
export function watchCancel(redis: Redis, channel: string, isRequested: () => Promise<boolean>, stop: () => void): Listening {
  // When Redis is away, the request is read again after the next reconnect.
  const read = async () => {
    if (await isRequested().catch(() => false)) stop();
  };
  const listening = channelsOf(redis).listen(channel, (message) => (message === null ? void read() : stop()));
  const ready = whileRedisAnswers(redis, listening.ready).then(read);
  ready.catch(() => undefined);
  return { ...listening, ready };
}

/** Remembers whether anything was published to a channel. */
export class Bell {
  #rang = false;
  #wake = (): void => undefined;

  /** @param everyMs the longest wait, in case a message was lost with a connection that died unnoticed */
  constructor(private readonly everyMs: number) {}

  readonly ring = (): void => {
    this.#rang = true;
    this.#wake();
  };

  /** Resolves when the bell rings, at once if it rang since the last wait. Also resolves after `everyMs`, and when `signal` aborts. */
  async rung(signal: AbortSignal): Promise<void> {
    if (!this.#rang && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = () => resolve();
      const timer = setTimeout(this.#wake, this.everyMs);
      signal.addEventListener('abort', this.#wake);
      await promise;
      clearTimeout(timer);
      signal.removeEventListener('abort', this.#wake);
    }
    this.#rang = false;
  }
}
