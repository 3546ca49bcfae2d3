import { once } from 'node:events';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import {
  type Metadata as CallMetadata,
  Metadata,
  Server,
  ServerCredentials,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type UntypedHandleCall,
} from '@grpc/grpc-js';
import { ERROR_KINDS, errorCode, EtudeError, isAbort } from './errors.js';
import { decodeRequest, type Handler, methodDefinition } from './grpc.js';
import { boundedError, encodeStatus, STATUS_DETAILS_KEY } from './rich-status.js';

export interface ServedCall {
  readonly metadata: CallMetadata;
  /** Aborts when the caller cancels or the deadline passes. */
  readonly signal: AbortSignal;
  /** ms since 1970; Infinity without a deadline. */
  readonly deadlineMs: number;
}

/** The handlers of a service. `C` is the context that `open` makes of each call. */
export type ServiceHandlers<S extends DescService, C> = { readonly [K in keyof S['method']]: Handler<S['method'][K], [C]> };

interface ServingSettings<C> {
  /** Authenticates the caller before every handler. Errors that it throws become the status of the call. */
  open(call: ServedCall, method: DescMethod): C | Promise<C>;
  /** Checks the bytes of a request, once `open` has admitted the call. Errors that it throws become the status of the call. */
  checkBytes?(method: DescMethod, bytes: Uint8Array): void;
  /** Called for failures without a code; the caller receives only the id. An EtudeError INTERNAL is sent unchanged. */
  onMistake(method: string, errorId: string, error: unknown): void;
}

type AnyCall = ServerUnaryCall<Buffer, object> | ServerWritableStream<Buffer, object> | ServerReadableStream<Buffer, object>;

function served(call: AnyCall): ServedCall {
  const gone = new AbortController();
  const abort = () => gone.abort(new EtudeError('CANCELLED', 'The caller ended the call.'));
  if (call.cancelled) abort();
  else (call as NodeJS.EventEmitter).once('cancelled', abort);
  const deadline = call.getDeadline();
  return { metadata: call.metadata, signal: gone.signal, deadlineMs: deadline instanceof Date ? deadline.getTime() : deadline };
}

/** How long to wait for the reset after a stream ends. Measured: at most 28 ms in 200 calls, on two cores with eight busy processes. */
const CUT_WAIT_MS = 50;

/** The gRPC error for a call, with `google.rpc.Status` in its trailers. */
export function statusOf(whole: EtudeError): Error & { code: number; details: string; metadata: Metadata } {
  const error = boundedError(whole);
  const trailers = new Metadata();
  trailers.set(STATUS_DETAILS_KEY, encodeStatus(error));
  return Object.assign(new Error(error.message), { code: ERROR_KINDS[error.code].grpc, details: error.message, metadata: trailers });
}

/** The requests of a stream. @throws EtudeError CANCELLED if the caller cancelled, because a partial upload must never count as complete */
async function* requestsOf(
  call: ServerReadableStream<Buffer, object>,
  decode: (bytes: Buffer) => object,
  signal: AbortSignal,
): AsyncIterable<object> {
  for await (const bytes of call as AsyncIterable<Buffer>) yield decode(bytes);
  // When a call is cancelled, Node's HTTP/2 first ends its requests as if they were complete. The reset follows in a later packet.
  await new Promise<void>((resolve) => {
    if (signal.aborted) return resolve();
    // After a stall, timers run before sockets are read. One more turn of the event loop reads a reset that is already in the socket.
    setTimeout(() => setImmediate(resolve), CUT_WAIT_MS);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  signal.throwIfAborted();
}

/** Pulls answers no faster than the caller reads them, so that a slow caller costs the memory of one message. */
async function pump(call: ServerWritableStream<Buffer, object>, answers: AsyncIterable<object>, signal: AbortSignal): Promise<void> {
  for await (const answer of answers) {
    signal.throwIfAborted();
    if (!call.write(answer)) await once(call, 'drain', { signal }).catch(() => undefined);
  }
}

/**
 * Adds a service to a server. Unary handlers are promises; streams are async iterables with backpressure.
 * Thrown errors become a status with their code. An error without a code becomes INTERNAL, with an id for the log.
 */
export function addService<S extends DescService, C>(
  server: Server,
  service: S,
  handlers: ServiceHandlers<S, C>,
  settings: ServingSettings<C>,
): void {
  const failure = (path: string, error: unknown, { signal }: ServedCall) => {
    if (signal.aborted) return statusOf(signal.reason as EtudeError);
    const code = isAbort(error) ? 'CANCELLED' : errorCode(error);
    if (code !== 'INTERNAL' || error instanceof EtudeError) {
      const { message, details } = error as EtudeError;
      return statusOf(new EtudeError(code, message, details ?? {}));
    }
    const id = crypto.randomUUID();
    settings.onMistake(path, id, error);
    return statusOf(new EtudeError('INTERNAL', `An internal error occurred. Give the operator this id, which is also in the log: ${id}.`));
  };
  const handling = (method: DescMethod): UntypedHandleCall => {
    const handle = handlers[method.localName as keyof S['method']] as unknown as (request: object, call: C) => unknown;
    const decode = (bytes: Buffer) => {
      settings.checkBytes?.(method, bytes);
      return decodeRequest(method, bytes);
    };
    const run = async (call: AnyCall, context: ServedCall): Promise<unknown> => {
      const opened = await settings.open(context, method);
      return handle('request' in call ? decode(call.request) : requestsOf(call, decode, context.signal), opened);
    };
    const streaming = (call: ServerWritableStream<Buffer, object>): void => {
      const context = served(call);
      const work = async () => pump(call, (await run(call, context)) as AsyncIterable<object>, context.signal);
      work().then(
        () => call.end(),
        (error: unknown) => call.emit('error', failure(call.getPath(), error, context)),
      );
    };
    const answering = (call: AnyCall, answer: (error: Error | null, value?: unknown) => void): void => {
      const context = served(call);
      run(call, context).then(
        (value) => answer(null, value),
        (error: unknown) => answer(failure(call.getPath(), error, context)),
      );
    };
    return method.methodKind === 'server_streaming' ? streaming : (answering as UntypedHandleCall);
  };
  const { methods } = service;
  // The handlers decode the requests, because grpc-js would answer INTERNAL to a malformed request.
  const undecoded = { requestDeserialize: (bytes: Buffer) => bytes };
  const definition = Object.fromEntries(methods.map((method) => [method.name, { ...methodDefinition(method), ...undecoded }]));
  server.addService(definition, Object.fromEntries(methods.map((method) => [method.name, handling(method)])));
}

const MESSAGE_MAX_BYTES = 16 * 1024 * 1024;

export interface ListeningServer {
  readonly port: number;
  /** Stops taking calls, waits at most `graceMs` for running calls, then cuts them. */
  close(graceMs: number): Promise<void>;
}

/** Opens a gRPC server. @param port 0: any free port. @param add adds the services, before the port opens. @throws Error such as EADDRINUSE */
export async function listenGrpc(
  host: string,
  port: number,
  add: (server: Server) => void,
  credentials: ServerCredentials = ServerCredentials.createInsecure(),
): Promise<ListeningServer> {
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_MAX_BYTES,
    'grpc.max_send_message_length': -1,
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    'grpc.keepalive_permit_without_calls': 1,
  });
  add(server);
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(address, credentials, (error, opened) => (error ? reject(error) : resolve(opened)));
  });
  return {
    port: bound,
    async close(graceMs) {
      const late = setTimeout(() => server.forceShutdown(), graceMs);
      await new Promise((resolve) => server.tryShutdown(resolve));
      clearTimeout(late);
    },
  };
}
