import type { DescMessage, DescMethod, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { type CallOptions, type ChannelCredentials, Client, type ClientReadableStream, credentials, Metadata } from '@grpc/grpc-js';
import { methodDefinition } from './grpc.js';

/** A task comes back with its files, which gRPC's own limit of 4 MiB would cut off. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;

export interface CallSettings {
  /** Milliseconds from now; none means no deadline. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

type Call<M extends DescMethod> = M extends { methodKind: 'unary'; input: infer I extends DescMessage; output: infer O extends DescMessage }
  ? (request: MessageInitShape<I>, settings?: CallSettings) => Promise<MessageShape<O>>
  : M extends { methodKind: 'server_streaming'; input: infer I extends DescMessage; output: infer O extends DescMessage }
    ? (request: MessageInitShape<I>, settings?: CallSettings) => AsyncIterable<MessageShape<O>>
    : never;

/** Typed client of one service: unary calls are promises, streams are async iterables that cancel when left. */
export type ServiceClient<S extends DescService> = { readonly [K in keyof S['method']]: Call<S['method'][K]> } & { close(): void };

export interface ClientSettings {
  /** Sent as `authorization: Bearer <key>`. */
  readonly apiKey?: string;
  readonly credentials?: ChannelCredentials;
}

function options({ timeoutMs }: CallSettings): CallOptions {
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}

function cancelOn(signal: AbortSignal | undefined, call: { cancel(): void }): () => void {
  const cancel = () => call.cancel();
  if (signal?.aborted) cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  return () => signal?.removeEventListener('abort', cancel);
}

function unary(client: Client, method: DescMethod, metadata: Metadata) {
  const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
  return (request: object, settings: CallSettings = {}) =>
    new Promise<object>((resolve, reject) => {
      const call = client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        options(settings),
        (error, value) => {
          release();
          if (error || value === undefined) reject(error ?? new Error(`${path} answered nothing`));
          else resolve(value);
        },
      );
      const release = cancelOn(settings.signal, call);
    });
}

function serverStreaming(client: Client, method: DescMethod, metadata: Metadata) {
  const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
  return async function* stream(request: object, settings: CallSettings = {}) {
    const call: ClientReadableStream<object> = client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      metadata,
      options(settings),
    );
    const release = cancelOn(settings.signal, call);
    try {
      yield* call;
    } finally {
      release();
      call.on('error', () => undefined); // leaving early cancels, which grpc-js reports as an error to nobody
      call.cancel();
    }
  };
}

/** @param address "host:port". Rejections are grpc-js `ServiceError`s: `code`, `details`, `metadata`. */
export function createServiceClient<S extends DescService>(service: S, address: string, settings: ClientSettings = {}): ServiceClient<S> {
  const client = new Client(address, settings.credentials ?? credentials.createInsecure(), {
    'grpc.max_receive_message_length': ANSWER_MAX_BYTES,
  });
  const metadata = new Metadata();
  if (settings.apiKey) metadata.set('authorization', `Bearer ${settings.apiKey}`);
  const calls = service.methods.map((method) => {
    const make = method.methodKind === 'unary' ? unary : serverStreaming;
    return [method.localName, make(client, method, metadata)] as const;
  });
  return { ...Object.fromEntries(calls), close: () => client.close() } as unknown as ServiceClient<S>;
}
