import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { channelsOf } from '../redis/channels.js';
import { memberOf } from '../redis/keys.js';

/** A task or an execution. */
export interface Cancellable {
  readonly tenant: string;
  readonly id: string;
}

/**
 * Hears at once that a task or an execution is to stop. A message reaches connected processes only: the request itself is stored with
 * the task (`TaskStore.requestCancel`) and the execution, and is read when work starts and after every reconnect.
 */
export class CancelBus {
  /** By `<tenant>/<id>`: true for a cancel, false for a new connection, where one may have been missed. */
  readonly #watches = new EventEmitter().setMaxListeners(0);

  /** @param channel `RedisKeys.cancel` or `RedisKeys.cancelExecution` */
  constructor(
    private readonly redis: Redis,
    private readonly channel: string,
  ) {}

  /** Resolves once messages are heard. */
  async ready(): Promise<void> {
    await channelsOf(this.redis).listen(this.channel, (member) => {
      if (member === null) for (const each of this.#watches.eventNames()) this.#watches.emit(each, false);
      else this.#watches.emit(member, true);
    });
  }

  /**
   * Calls `stop` when the task or execution is cancelled, now or later.
   *
   * @param isRequested reads the stored request: now and after every reconnect
   * @returns a function that ends the watch
   */
  watch(wanted: Cancellable, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    const release = this.listen(wanted, isRequested, stop);
    readStored(isRequested, stop);
    return release;
  }

  /** As `watch`, for a caller that reads the stored request itself after this call. */
  listen({ tenant, id }: Cancellable, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    const member = memberOf(tenant, id);
    const hear = (isCancelled: boolean) => (isCancelled ? stop() : readStored(isRequested, stop));
    this.#watches.on(member, hear);
    return () => void this.#watches.off(member, hear);
  }
}

/** Redis away: the next reconnect reads it again. */
function readStored(isRequested: () => Promise<boolean>, stop: () => void): void {
  void isRequested().then(
    (requested) => requested && stop(),
    () => undefined,
  );
}
