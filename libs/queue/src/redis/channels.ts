import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { memberOf } from './keys.js';
import { reportOutages } from './redis.js';

/** Called with each message of a channel, and with null after a reconnect, when messages may have been missed. */
export type ChannelListener = (message: string | null) => void;

/** One subscriber connection for all listeners on all channels. The first listener opens it, and it stays open. */
export class Channels {
  readonly #listeners = new EventEmitter().setMaxListeners(0);
  #subscriber: Redis | null = null;

  constructor(private readonly redis: Redis) {}

  /** Resolves once subscribed; the listener gets every later message. @returns a function that removes the listener */
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
    // ioredis subscribes again by itself after a reconnect.
    subscriber.on('ready', () => this.#listeners.eventNames().forEach((channel) => this.#listeners.emit(channel, null)));
    this.redis.once('end', () => subscriber.disconnect());
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
 * One channel whose messages name a task or execution that changed, as `<tenant>/<id>`. A message carries no data and may be lost
 * with its connection: the change itself is stored, and listeners read it again after every reconnect.
 */
export class MemberBus {
  readonly #listeners = new EventEmitter().setMaxListeners(0);
  #subscribed: Promise<unknown> | null = null;

  constructor(
    private readonly redis: Redis,
    private readonly channel: string,
  ) {}

  /** Resolves once subscribed; waits for Redis. */
  async ready(): Promise<void> {
    await (this.#subscribed ??= channelsOf(this.redis).listen(this.channel, (member) => {
      if (member !== null) this.#listeners.emit(member, true);
      else for (const each of this.#listeners.eventNames()) this.#listeners.emit(each, false);
    }));
  }

  /** @param hear called with true for a message about `member`, with false after a reconnect @returns a function that ends it */
  on(member: string, hear: (isTold: boolean) => void): () => void {
    this.#listeners.on(member, hear);
    return () => void this.#listeners.off(member, hear);
  }
}

/**
 * Listens for cancels of tasks or executions, on `RedisKeys.cancel` or `RedisKeys.cancelExecution`. The cancel request itself is stored
 * with the task or execution, and is read when work starts and after every reconnect.
 */
export class CancelBus extends MemberBus {
  /**
   * Calls `stop` when the task or execution is cancelled, or at once if it already is.
   *
   * @param isRequested reads the stored request: now and after every reconnect
   * @returns a function that ends the watch
   */
  watch(
    { tenant, id }: { readonly tenant: string; readonly id: string },
    isRequested: () => Promise<boolean>,
    stop: () => void,
  ): () => void {
    const release = this.on(memberOf(tenant, id), (isCancelled) => (isCancelled ? stop() : readStored(isRequested, stop)));
    readStored(isRequested, stop);
    return release;
  }
}

/** When Redis is away, the request is read again after the next reconnect. */
function readStored(isRequested: () => Promise<boolean>, stop: () => void): void {
  void isRequested().then(
    (requested) => requested && stop(),
    () => undefined,
  );
}

/** Remembers whether anything was published to a channel. */
export class Bell {
  #ringing = new AbortController();

  /** @param everyMs the longest wait, in case a message was lost with a connection that died unnoticed */
  constructor(private readonly everyMs: number) {}

  readonly ring = (): void => this.#ringing.abort();

  /** Resolves when the bell rings, at once if it rang since the last wait. Also resolves after `everyMs`, and when `signal` aborts. */
  async rung(signal: AbortSignal): Promise<void> {
    const woken = AbortSignal.any([signal, this.#ringing.signal]);
    await sleep(this.everyMs, undefined, { signal: woken }).catch(() => undefined);
    if (this.#ringing.signal.aborted) this.#ringing = new AbortController();
  }
}
