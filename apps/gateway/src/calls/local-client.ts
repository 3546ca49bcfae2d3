import { create, type DescMethod, type DescService } from '@bufbuild/protobuf';
import { EtudeError, unlessAborted } from '@etude/contracts/errors';
import type { CallSettings, ServiceClient } from '@etude/contracts/grpc-client';
import { type Calls, eachOf } from './calls.js';

type Handle = (request: object, call: object) => unknown;

/** A client of a service in this process: the same checks and answers as over gRPC, without a socket. It rejects with EtudeErrors. */
export function localClient<S extends DescService>(calls: Calls, service: S): Omit<ServiceClient<S>, 'close'> {
  const handlers = calls.handlersOf(service) as Readonly<Record<string, Handle>>;
  const entries = service.methods.map((method) => {
    const answers = answersOf(calls, method, handlers[method.localName]!);
    const isStream = method.methodKind === 'server_streaming';
    const one = async (request: object, settings?: CallSettings) => (await Array.fromAsync(answers(request, settings)))[0];
    return [method.localName, isStream ? answers : one];
  });
  return Object.fromEntries(entries) as Omit<ServiceClient<S>, 'close'>;
}

/** Yields one answer, or the answers of a stream. If the caller leaves or the deadline passes, work continues but nobody waits, as over gRPC. */
const answersOf = (calls: Calls, method: DescMethod, handle: Handle) =>
  async function* answers(request: object, { timeoutMs = Infinity, signal, metadata = {} }: CallSettings = {}): AsyncGenerator<object> {
    const ended = new AbortController();
    const leave = () => ended.abort(new EtudeError('CANCELLED', 'The caller ended the call.'));
    if (signal?.aborted) leave();
    signal?.addEventListener('abort', leave, { once: true });
    const late = () => ended.abort(new EtudeError('DEADLINE_EXCEEDED', `The call took longer than ${timeoutMs} ms. Set a longer timeout.`));
    const timer = timeoutMs === Infinity ? undefined : setTimeout(late, Math.max(0, timeoutMs));
    const authorization = metadata['authorization'] ?? [];
    const { traceparent } = metadata;
    const arrival = { authorization: [authorization].flat(), signal: ended.signal, deadlineMs: Date.now() + timeoutMs, traceparent };
    try {
      const context = await calls.admit(method, arrival);
      const isUpload = method.methodKind === 'client_streaming';
      const messageOf = (one: object) => create(method.input, one as never);
      const message = isUpload ? eachOf(request as AsyncIterable<object>, messageOf) : messageOf(request);
      const work = handle(message, context);
      if (method.methodKind !== 'server_streaming')
        yield create(method.output, (await unlessAborted(work as Promise<object>, ended.signal)) as never);
      else for await (const answer of work as AsyncIterable<object>) yield create(method.output, answer as never);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    }
  };
