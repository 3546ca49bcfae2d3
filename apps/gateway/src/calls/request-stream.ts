import type { ServerCall } from '@etude/contracts/grpc';
import { checkRequest } from './check-request.js';

/**
 * The requests of a call that sends a stream of them, each checked as it comes. They are taken from the network no faster than they
 * are read from here.
 */
export class RequestStream<T extends object> implements AsyncIterable<T> {
  readonly #call: AsyncIterable<T>;

  constructor(call: ServerCall) {
    this.#call = call as unknown as AsyncIterable<T>;
  }

  /** @throws EtudeError INVALID_ARGUMENT for one that does not decode or has fields that are not known */
  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for await (const request of this.#call) {
      checkRequest(request);
      yield request;
    }
  }
}
