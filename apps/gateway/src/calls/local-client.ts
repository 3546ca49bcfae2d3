import { create, type DescMethod, type DescService } from '@bufbuild/protobuf';
import { EtudeError } from '@etude/contracts/errors';
import type { CallSettings, ServiceClient } from '@etude/contracts/grpc-client';
import type { Arrival, Calls } from './calls.js';

type Handle = (request: object, call: object) => unknown;

/** A client of a service in this process: the same checks and answers as over gRPC, without a socket. It rejects with EtudeErrors. */
export function localClient<S extends DescService>(calls: Calls, service: S): Omit<ServiceClient<S>, 'close'> {
  const handlers = calls.handlersOf(service) as Readonly<Record<string, Handle>>;
  const entries = service.methods.map((method) => {
    const handle = handlers[method.localName]!;
    return [method.localName, method.methodKind === 'server_streaming' ? streamed(calls, method, handle) : answered(calls, method, handle)];
  });
  return Object.fromEntries(entries) as Omit<ServiceClient<S>, 'close'>;
}

/** If the caller leaves or the deadline passes, the work continues but nobody waits for it, as over gRPC. */
const answered =
  (calls: Calls, method: DescMethod, handle: Handle) =>
  async (request: object, settings: CallSettings = {}): Promise<object> => {
    const { arrival, release } = arrivalOf(settings);
    try {
      const context = calls.admit(method, arrival);
      const isStream = method.methodKind === 'client_streaming';
      const work = handle(isStream ? messages(method, request as AsyncIterable<object>) : create(method.input, request as never), context);
      return create(method.output, (await unlessAborted(work as Promise<object>, arrival.signal)) as never);
    } finally {
      release();
    }
  };

const streamed = (calls: Calls, method: DescMethod, handle: Handle) =>
  async function* stream(request: object, settings: CallSettings = {}): AsyncGenerator<object> {
    const { arrival, release } = arrivalOf(settings);
    try {
      const context = calls.admit(method, arrival);
      for await (const answer of handle(create(method.input, request as never), context) as AsyncIterable<object>)
        yield create(method.output, answer as never);
    } finally {
      release();
    }
  };

async function* messages({ input }: DescMethod, requests: AsyncIterable<object>): AsyncGenerator<object> {
  for await (const request of requests) yield create(input, request as never);
}

function arrivalOf({ timeoutMs = Infinity, signal, metadata = {} }: CallSettings): {
  readonly arrival: Arrival;
  readonly release: () => void;
} {
  const ended = new AbortController();
  const leave = () => ended.abort(new EtudeError('CANCELLED', 'The caller ended the call.'));
  if (signal?.aborted) leave();
  signal?.addEventListener('abort', leave, { once: true });
  const late = () => ended.abort(new EtudeError('DEADLINE_EXCEEDED', `The call took longer than ${timeoutMs} ms.`));
  const timer = timeoutMs === Infinity ? undefined : setTimeout(late, Math.max(0, timeoutMs));
  const authorization = metadata['authorization'];
  return {
    arrival: {
      authorization: authorization === undefined ? [] : [authorization],
      signal: ended.signal,
      deadlineMs: Date.now() + timeoutMs,
    },
    release: () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    },
  };
}

/** Stops waiting for `work` when the signal aborts. @throws the signal's reason */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
