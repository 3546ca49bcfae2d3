import type { Redis } from 'ioredis';
import { memberOf, parseMember, RedisKeys } from '../redis/keys.js';
import { connectRedis, type QueueLogger } from '../redis/redis.js';

export interface Cancelled {
  readonly tenant: string;
  /** A task's id, or an execution's. */
  readonly id: string;
}

type Listener = (cancelled: Cancelled) => void;

/**
 * Tells every process at once that a task or an execution is to stop. A message reaches only who is connected: the wish itself
 * is stored with the task (`TaskStore.requestCancel`) and the execution, to be read when work starts and after `onReconnect`.
 */
export class CancelBus {
  readonly #keys: RedisKeys;
  readonly #publisher: Redis;
  readonly #subscriber: Redis;
  readonly #tasks = new Set<Listener>();
  readonly #executions = new Set<Listener>();
  readonly #reconnects = new Set<() => void>();
  readonly #subscribed: Promise<unknown>;

  constructor(redisUrl: string, prefix: string, logger?: QueueLogger) {
    this.#keys = new RedisKeys(prefix);
    this.#publisher = connectRedis(redisUrl, 'worker', logger);
    this.#subscriber = connectRedis(redisUrl, 'subscriber', logger);
    this.#subscriber.on('message', (channel: string, message: string) => this.#heard(channel, message));
    this.#subscriber.on('ready', () => this.#reconnects.forEach((listener) => listener()));
    this.#subscribed = this.#subscriber.subscribe(this.#keys.cancel, this.#keys.cancelExecution);
    // Shown by `ready`.
    this.#subscribed.catch(() => undefined);
  }

  /** Resolves once messages are heard. */
  async ready(): Promise<void> {
    await this.#subscribed;
  }

  async publish(tenant: string, taskId: string): Promise<void> {
    await this.#publisher.publish(this.#keys.cancel, memberOf(tenant, taskId));
  }

  /** @returns a function that takes the listener away */
  onCancel(listener: Listener): () => void {
    this.#tasks.add(listener);
    return () => this.#tasks.delete(listener);
  }

  onExecutionCancel(listener: Listener): () => void {
    this.#executions.add(listener);
    return () => this.#executions.delete(listener);
  }

  /** Messages may have been missed; look at what is stored. */
  onReconnect(listener: () => void): () => void {
    this.#reconnects.add(listener);
    return () => this.#reconnects.delete(listener);
  }

  /**
   * Calls `stop` once when the task or execution is cancelled, from whatever moment on: `isRequested` reads what is stored,
   * now and after every reconnect.
   */
  watch(kind: 'task' | 'execution', wanted: Cancelled, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    const release = this.listen(kind, wanted, isRequested, stop);
    lookAt(isRequested, stop);
    return release;
  }

  /** As `watch`, for who reads after this what is stored: it is read here after reconnects only. */
  listen(kind: 'task' | 'execution', wanted: Cancelled, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    const listener: Listener = ({ tenant, id }) => {
      if (tenant === wanted.tenant && id === wanted.id) stop();
    };
    const heard = kind === 'task' ? this.onCancel(listener) : this.onExecutionCancel(listener);
    const releases = [heard, this.onReconnect(() => lookAt(isRequested, stop))];
    return () => releases.forEach((release) => release());
  }

  async close(): Promise<void> {
    this.#publisher.disconnect();
    this.#subscriber.disconnect();
  }

  #heard(channel: string, message: string): void {
    const cancelled = parseMember(message);
    if (!cancelled) return;
    for (const listener of channel === this.#keys.cancel ? this.#tasks : this.#executions) listener(cancelled);
  }
}

/** Redis away: the reconnect asks again. */
function lookAt(isRequested: () => Promise<boolean>, stop: () => void): void {
  void isRequested().then(
    (requested) => requested && stop(),
    () => undefined,
  );
}
