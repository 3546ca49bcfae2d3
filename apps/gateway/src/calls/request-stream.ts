import type { ServerCall } from '@etude/contracts/grpc';
import { EtudeError } from '@etude/contracts/errors';
import { checkRequest } from './check-request.js';

/** A client that cancels may end its requests as if they were all, and reset the stream with its next frame. */
const CUT_WAIT_MS = 20;

function cutIsKnown(call: ServerCall): Promise<void> {
  return new Promise((resolve) => {
    if (call.cancelled) return resolve();
    const done = () => {
      clearTimeout(timer);
      (call as NodeJS.EventEmitter).off('cancelled', done);
      resolve();
    };
    const timer = setTimeout(done, CUT_WAIT_MS);
    (call as NodeJS.EventEmitter).once('cancelled', done);
  });
}

/**
 * The requests of a call that sends a stream of them, each checked as it comes. They are taken from the network no faster than they
 * are read from here.
 */
export class RequestStream<T extends object> implements AsyncIterable<T> {
  constructor(private readonly call: ServerCall) {}

  /** @throws EtudeError INVALID_ARGUMENT for one that does not decode or has fields that are not known; CANCELLED where they were cut */
  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for await (const request of this.call as unknown as AsyncIterable<T>) {
      checkRequest(request);
      yield request;
    }
    await cutIsKnown(this.call);
    if (this.call.cancelled) throw new EtudeError('CANCELLED', 'The caller ended the call before its last request.');
  }
}
