import { addAbortListener, once } from 'node:events';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import {
  type CallOptions,
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientWritableStream,
  connectivityState,
  credentials,
  Metadata,
  type requestCallback,
} from '@grpc/grpc-js';
import { type Caller, methodDefinition } from './grpc.js';

export type { ChannelCredentials } from '@grpc/grpc-js';

export { status } from '@grpc/grpc-js';

/** Tasks are answered with their files, which can exceed gRPC's default limit of 4 MiB. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;
const CONNECT_MAX_MS = 10_000;
/** A stream whose server no longer answers breaks 40 s after its last sign of life. */
const KEEPALIVE = { 'grpc.keepalive_time_ms': 30_000, 'grpc.keepalive_timeout_ms': 10_000 };

export interface CallSettings {
  /** Deadline in ms from now; absent: no deadline. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Typed client of one service. Leaving the loop over an answer stream cancels the call. Requests are read only as fast as the server takes them. */
export type ServiceClient<S extends DescService> = {
  readonly [K in keyof S['method']]: Caller<S['method'][K], [settings?: CallSettings]>;
} & { close(): void };

export interface ClientSettings {
  /** Sent as `authorization: Bearer <key>`. */
  readonly apiKey?: string;
  readonly credentials?: ChannelCredentials;
  readonly channel?: ChannelOptions;
  /** Longest attempt to connect, in ms; absent: 10 s. */
  readonly connectMaxMs?: number;
}

/**
 * A channel that gives up an attempt to connect if no server answers. Calls that wait for it fail with UNAVAILABLE, and the next call
 * tries again. grpc-js has no limit of its own, and the kernel's is over two minutes: https://github.com/grpc/grpc-node/issues/2785
 */
class Connection {
  client: Client;

  constructor(
    private readonly open: (more: ChannelOptions) => Client,
    private readonly connectMaxMs: number,
  ) {
    this.client = open({});
    this.#watch();
  }

  #watch(): void {
    const channel = this.client.getChannel();
    const state = channel.getConnectivityState(false);
    if (state === connectivityState.SHUTDOWN) return;
    const until = state === connectivityState.CONNECTING ? Date.now() + this.connectMaxMs : Infinity;
    channel.watchConnectivityState(state, until, (late) => {
      if (late) {
        const stuck = this.client;
        this.client = this.open({ 'grpc.use_local_subchannel_pool': 1 }); // the shared pool would give the same attempt again
        stuck.close();
      }
      this.#watch();
    });
  }
}

function options({ timeoutMs }: CallSettings): CallOptions {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}

function withMore(base: Metadata, { metadata }: CallSettings): Metadata {
  if (!metadata) return base;
  const all = base.clone();
  for (const [key, value] of Object.entries(metadata)) all.set(key, value);
  return all;
}

const cancelOn = (signal: AbortSignal | undefined, call: { cancel(): void }): Disposable | undefined =>
  signal && addAbortListener(signal, () => call.cancel());

/** Unary calls and calls with a request stream, which both have one answer. */
function oneAnswer(connection: Connection, method: DescMethod, metadata: Metadata) {
  const { path, requestSerialize, responseDeserialize, requestStream } = methodDefinition(method);
  return async (request: object, settings: CallSettings = {}): Promise<object> => {
    const answer = Promise.withResolvers<object>();
    const over = new AbortController();
    const answered: requestCallback<object> = (error, value) => {
      over.abort();
      if (error || value === undefined) answer.reject(error ?? new Error(`${path} sent no answer`));
      else answer.resolve(value);
    };
    const all = withMore(metadata, settings);
    const start = () => {
      const { client } = connection;
      if (!requestStream)
        return client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, all, options(settings), answered);
      const call = client.makeClientStreamRequest(path, requestSerialize, responseDeserialize, all, options(settings), answered);
      call.on('error', () => undefined); // the error also reaches the callback above
      send(call, request as AsyncIterable<object>, over.signal).catch((error: unknown) => {
        if (over.signal.aborted) return;
        answer.reject(error);
        call.cancel();
      });
      return call;
    };
    const cancelling = cancelOn(settings.signal, start());
    return answer.promise.finally(() => cancelling?.[Symbol.dispose]());
  };
}

function serverStreaming(connection: Connection, method: DescMethod, metadata: Metadata) {
  const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
  return async function* stream(request: object, settings: CallSettings = {}) {
    const all = withMore(metadata, settings);
    const call = connection.client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, all, options(settings));
    const cancelling = cancelOn(settings.signal, call);
    try {
      yield* call;
    } finally {
      cancelling?.[Symbol.dispose]();
      call.on('error', () => undefined); // leaving the loop early cancels, and grpc-js emits that as an error without a listener
      call.cancel();
    }
  };
}

/** Sends requests until the source ends, or until `over` aborts because the server has answered early. */
async function send(call: ClientWritableStream<object>, requests: AsyncIterable<object>, over: AbortSignal): Promise<void> {
  for await (const request of requests) {
    if (over.aborted) return;
    if (!call.write(request)) await once(call, 'drain', { signal: over }).catch(() => undefined);
  }
  call.end();
}

const CALLS = { unary: oneAnswer, server_streaming: serverStreaming, client_streaming: oneAnswer } as const;

/** @param address "host:port". Calls reject with the `ServiceError` of grpc-js: `code`, `details`, `metadata`. */
export function createServiceClient<S extends DescService>(service: S, address: string, settings: ClientSettings = {}): ServiceClient<S> {
  const how = settings.credentials ?? credentials.createInsecure();
  const channel = { 'grpc.max_receive_message_length': ANSWER_MAX_BYTES, ...KEEPALIVE, ...settings.channel };
  const open = (more: ChannelOptions) => new Client(address, how, { ...channel, ...more });
  const connection = new Connection(open, settings.connectMaxMs ?? CONNECT_MAX_MS);
  const metadata = new Metadata();
  if (settings.apiKey) metadata.set('authorization', `Bearer ${settings.apiKey}`);
  const calls = service.methods.map((method) => {
    if (method.methodKind === 'bidi_streaming') throw new Error(`${method.name}: this client has no bidirectional streams`);
    return [method.localName, CALLS[method.methodKind](connection, method, metadata)] as const;
  });
  return { ...Object.fromEntries(calls), close: () => connection.client.close() } as unknown as ServiceClient<S>;
}
