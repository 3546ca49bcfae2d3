import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { type CallOptions, type ChannelOptions, Client, Metadata } from '@grpc/grpc-js';
import { Connection } from './connection.js';
import { EtudeError, errorOf } from './errors.js';
import { type ClientSettings, credentialsOf, findAddress, findKey, isLocal, type Key } from './settings.js';

const DEFAULT_MS = 30_000;
const UPLOAD_MS = 300_000;
/** If the gateway no longer answers, a stream breaks 40 s after the last data, and is resumed. */
const KEEPALIVE_MS = 30_000;
const MESSAGE_MAX_BYTES = 16 * 1024 * 1024;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** One call's own settings. */
export interface CallSettings {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface Page {
  readonly nextPageToken: string;
}

export const newRequestId = () => crypto.randomUUID();

/** Makes calls for one caller, with deadlines, retries, and streams that resume automatically. */
export class Calls {
  readonly address: string;
  readonly #connection: Connection;
  readonly #key: Key;
  readonly #timeoutMs: number;
  readonly #retryForMs: number;

  /** @param keepaliveMs time without data after which the gateway is pinged. A third of it is the timeout of pings and of connecting. */
  constructor({ address, apiKey, tls, timeoutMs = DEFAULT_MS, retryForMs = DEFAULT_MS }: ClientSettings, keepaliveMs = KEEPALIVE_MS) {
    this.address = findAddress(address);
    this.#key = findKey(apiKey, isLocal(address));
    this.#timeoutMs = timeoutMs;
    this.#retryForMs = retryForMs;
    const options = {
      'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
      'grpc.max_send_message_length': MESSAGE_MAX_BYTES,
      'grpc.keepalive_time_ms': keepaliveMs,
      'grpc.keepalive_timeout_ms': keepaliveMs / 3,
    };
    const how = credentialsOf(tls);
    const open = (more: ChannelOptions) => new Client(this.address, how, { ...options, ...more });
    this.#connection = new Connection(open, keepaliveMs / 3);
  }

  close(): void {
    this.#connection.client.close();
  }

  /**
   * Makes a call, and repeats it for up to `retryForMs` while a retry can help. A request that can have a request id gets one, so that a
   * repeat changes nothing twice.
   */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    { timeoutMs = this.#timeoutMs, signal }: CallSettings = {},
  ): Promise<MessageShape<O>> {
    const message = create(method.input, request) as MessageShape<I> & { requestId?: string };
    if ('requestId' in method.input.field && !message.requestId) message.requestId = newRequestId();
    const retry = new Retry(this.#retryForMs, signal);
    for (;;) {
      try {
        return await this.#once(method, message, timeoutMs, signal);
      } catch (error) {
        await retry.waitOrThrow(error);
      }
    }
  }

  async #once<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    message: MessageShape<I>,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    signal?.throwIfAborted();
    const [path, encode, decode] = wire(method);
    return new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + timeoutMs };
      const call = this.#connection.client.makeUnaryRequest(path, encode, decode, message, this.#metadata(), options, (error, answer) => {
        signal?.removeEventListener('abort', cancel);
        if (error || !answer) reject(errorOf(error));
        else resolve(answer);
      });
      const cancel = () => call.cancel();
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  /** Sends parts, no faster than the server reads them. Resolves with the answer to all parts. An upload is not repeated. */
  async upload<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    parts: Iterable<MessageInitShape<I>>,
  ): Promise<MessageShape<O>> {
    const [path, encode, decode] = wire(method);
    const options: CallOptions = { deadline: Date.now() + UPLOAD_MS };
    return new Promise((resolve, reject) => {
      const ended = new AbortController();
      const call = this.#connection.client.makeClientStreamRequest(path, encode, decode, this.#metadata(), options, (error, answer) => {
        ended.abort();
        if (error || !answer) reject(errorOf(error));
        else resolve(answer);
      });
      const send = async () => {
        for (const part of parts) {
          if (ended.signal.aborted) return;
          if (!call.write(create(method.input, part))) await once(call, 'drain', { signal: ended.signal });
        }
        call.end();
      };
      send().catch(() => call.cancel());
    });
  }

  /** Yields the messages of one stream, without a deadline. Leaving the loop cancels the call. */
  async *stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal?: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void> {
    signal?.throwIfAborted();
    const [path, encode, decode] = wire(method);
    const call = this.#connection.client.makeServerStreamRequest(path, encode, decode, create(method.input, request), this.#metadata());
    const cancel = () => call.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      for await (const message of call) yield message as MessageShape<O>;
    } catch (error) {
      throw errorOf(error);
    } finally {
      signal?.removeEventListener('abort', cancel);
      call.cancel();
    }
  }

  /** Yields each event once up to the last event. A broken stream is reopened after the last event seen. */
  async *resuming<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I> & object,
    isLast: (event: MessageShape<O>) => boolean,
    signal?: AbortSignal,
  ): AsyncGenerator<MessageShape<O>, void> {
    let resumeToken = '';
    // The time for retries begins when the stream breaks, because the caller may process an event for long.
    for (let retry: Retry | null = null; ;) {
      let broken: unknown = new EtudeError('the stream ended before its last event', 'UNAVAILABLE', { retryAfterMs: 0 });
      try {
        for await (const event of this.stream(method, { ...request, resumeToken }, signal)) {
          ({ resumeToken } = event as unknown as { readonly resumeToken: string });
          retry = null;
          yield event;
          if (isLast(event)) return;
        }
      } catch (error) {
        broken = error;
      }
      retry ??= new Retry(this.#retryForMs, signal);
      await retry.waitOrThrow(broken);
    }
  }

  /** Yields the items of all pages. */
  async *pages<I extends DescMessage, O extends DescMessage, Item>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I> & object,
    items: (page: MessageShape<O>) => readonly Item[],
  ): AsyncGenerator<Item, void> {
    for (let pageToken = ''; ;) {
      const page = await this.unary(method, { ...request, pageToken });
      yield* items(page);
      pageToken = (page as unknown as Page).nextPageToken;
      if (pageToken === '') return;
    }
  }

  #metadata(): Metadata {
    const metadata = new Metadata();
    const key = typeof this.#key === 'function' ? this.#key() : this.#key;
    if (key) metadata.set('authorization', `Bearer ${key}`);
    return metadata;
  }
}

/** Path, encoder and decoder of a method. */
function wire<I extends DescMessage, O extends DescMessage>({ parent, name, input, output }: DescMethod & { input: I; output: O }) {
  return [
    `/${parent.typeName}/${name}`,
    (message: MessageShape<I>) => Buffer.from(toBinary(input, message)),
    (bytes: Buffer) => fromBinary(output, bytes),
  ] as const;
}

/** Paces the repeats of one call. */
class Retry {
  readonly #end: number;
  #attempt = 0;

  constructor(
    ms: number,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.#end = performance.now() + ms;
  }

  /** Waits before the next try. @throws the error if a retry can't help, or the time is over */
  async waitOrThrow(error: unknown): Promise<void> {
    this.signal?.throwIfAborted();
    if (!(error instanceof EtudeError) || error.retryAfterMs === null) throw error;
    const grown = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#attempt) * (0.5 + Math.random() / 2);
    const ms = Math.max(error.retryAfterMs, grown);
    if (performance.now() + ms > this.#end) throw error;
    this.#attempt += 1;
    await sleep(ms, undefined, { signal: this.signal });
  }
}
