import { EtudeError } from '@etude/contracts/errors';
import { readEvents } from '@etude/queue/tasks/events';
import type { Producer } from '@etude/queue/jobs/producer';
import { isConnectionError } from '@etude/queue/redis/redis';
import type { EventSource } from './task-watcher.js';

/** Rejects with the signal's reason once it aborts, whatever `work` waits for. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

function toUnavailable(error: unknown): unknown {
  if (!isConnectionError(error)) return error;
  return new EtudeError(
    'QUEUE_UNAVAILABLE',
    'Redis went away while events were read; call again, with the last resume_token.',
    {},
    { cause: error },
  );
}

/**
 * Events out of Redis. Aborting takes effect at once, also while Redis is away, and throws the signal's reason.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE, NOT_FOUND
 */
export const redisEvents = ({ redis, keys }: Pick<Producer, 'redis' | 'keys'>): EventSource =>
  async function* events(tenant, taskId, afterId, signal) {
    const source = readEvents(redis, keys, tenant, taskId, afterId ?? '', signal);
    try {
      for (;;) {
        const next = await unlessAborted(source.next(), signal);
        signal.throwIfAborted();
        if (next.done) return;
        yield next.value;
      }
    } catch (error) {
      throw toUnavailable(error);
    } finally {
      // Not awaited: a reader that waits for a Redis that is away ends when it can.
      source.return().catch(() => undefined);
    }
  };
