import { once } from 'node:events';
import type { ServerCall } from '@etude/contracts/grpc';
import { Observable } from 'rxjs';

const needsDrain = (call: ServerCall): boolean => (call as { writableNeedDrain?: boolean }).writableNeedDrain === true;

/**
 * A stream of answers that is pulled no faster than the caller reads, so that a slow one costs the memory of one message.
 *
 * @param signal ends the wait for a caller that stopped reading; its reason is thrown
 */
export function pacedStream<T>(call: ServerCall, source: AsyncIterable<T>, signal: AbortSignal): Observable<T> {
  return new Observable<T>((subscriber) => {
    const pump = async () => {
      for await (const value of source) {
        if (subscriber.closed) return;
        subscriber.next(value);
        if (needsDrain(call)) await once(call, 'drain', { signal });
      }
      signal.throwIfAborted();
    };
    pump().then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(signal.aborted ? signal.reason : error),
    );
  });
}
