import { MemberBus } from '../redis/channels.js';
import { memberOf } from '../redis/keys.js';

/** A task or an execution. */
export interface Cancellable {
  readonly tenant: string;
  readonly id: string;
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
  watch(wanted: Cancellable, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    const release = this.listen(wanted, isRequested, stop);
    readStored(isRequested, stop);
    return release;
  }

  /** The same as `watch`, for a caller that reads the stored request itself after this call. */
  listen({ tenant, id }: Cancellable, isRequested: () => Promise<boolean>, stop: () => void): () => void {
    return this.on(memberOf(tenant, id), (isCancelled) => (isCancelled ? stop() : readStored(isRequested, stop)));
  }
}

/** When Redis is away, the request is read again after the next reconnect. */
function readStored(isRequested: () => Promise<boolean>, stop: () => void): void {
  void isRequested().then(
    (requested) => requested && stop(),
    () => undefined,
  );
}
