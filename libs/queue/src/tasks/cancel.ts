import type { Redis } from 'ioredis';
import { memberOf, RedisKeys } from '../redis/keys.js';
import { connectRedis } from '../redis/redis.js';
import type { QueueLogger } from '../redis/redis.js';

/** A task or an execution. */
export interface Cancellable {
  readonly tenant: string;
  readonly id: string;
}

interface Watch {
  readonly isRequested: () => Promise<boolean>;
  readonly stop: () => void;
}

/**
 * Hears at once that a task or an execution is to stop. A message reaches connected processes only: the request itself is stored with
 * the task (`TaskStore.requestCancel`) and the execution, and is read when work starts and after every reconnect.
 */
export class CancelBus {
  readonly #channels: Readonly<Record<'task' | 'execution', string>>;
  readonly #subscriber: Redis;
  /** By channel and message. */
  readonly #watches = new Map<string, Set<Watch>>();
  readonly #subscribed: Promise<unknown>;

  constructor(redisUrl: string, prefix: string, logger?: QueueLogger) {
    const keys = new RedisKeys(prefix);
    this.#channels = { task: keys.cancel, execution: keys.cancelExecution };
    this.#subscriber = connectRedis(redisUrl, 'subscriber', logger);
    this.#subscriber.on('message', (channel: string, message: string) =>
      this.#watches.get(`${channel} ${message}`)?.forEach(({ stop }) => stop()),
    );
    this.#subscriber.on('ready', () => this.#watches.forEach((watches) => watches.forEach(readStored)));
    this.#subscribed = this.#subscriber.subscribe(...Object.values(this.#channels));
    // Shown by `ready`.
    this.#subscribed.catch(() => undefined);
  }

  /** Resolves once messages are heard. */
  async ready(): Promise<void> {
    await this.#subscribed;
  }

  /**
   * Calls `stop` when the task or execution is cancelled, now or later.
   *
   * @param isRequested reads the stored request: now and after every reconnect
   * @returns a function that ends the watch
   */
  watch(kind: 'task' | 'execution', wanted: Cancellable, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    const release = this.listen(kind, wanted, isRequested, stop);
    readStored({ isRequested, stop });
    return release;
  }

  /** As `watch`, for a caller that reads the stored request itself after this call. */
  listen(kind: 'task' | 'execution', { tenant, id }: Cancellable, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    const key = `${this.#channels[kind]} ${memberOf(tenant, id)}`;
    const watch: Watch = { isRequested, stop };
    this.#watches.set(key, (this.#watches.get(key) ?? new Set()).add(watch));
    return () => {
      const watches = this.#watches.get(key);
      watches?.delete(watch);
      if (watches?.size === 0) this.#watches.delete(key);
    };
  }

  async close(): Promise<void> {
    this.#subscriber.disconnect();
  }
}

/** Redis away: the next reconnect reads it again. */
function readStored({ isRequested, stop }: Watch): void {
  void isRequested().then(
    (requested) => requested && stop(),
    () => undefined,
  );
}
