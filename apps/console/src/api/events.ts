import { type DescMessage, fromJsonString, type MessageShape } from '@bufbuild/protobuf';
import { type Api, ApiError, type Ask, type Verb } from './client.js';

const RETRY_MS = [250, 1_000, 3_000, 10_000];

export interface Streamed<S extends DescMessage> {
  readonly schema: S;
  readonly verb?: Verb;
  readonly path: string;
  readonly ask?: Ask;
  readonly signal: AbortSignal;
  /** Whether nothing follows this event. */
  readonly isLast: (event: MessageShape<S>) => boolean;
  /** Called with false while the connection is lost, and with true when it is back. */
  readonly onConnected?: (connected: boolean) => void;
}

/**
 * Events of a stream of the gateway, from the start until the last one. A lost connection goes on after the last event that was seen.
 *
 * @throws ApiError if the gateway refuses the call
 */
export async function* follow<S extends DescMessage>(api: Api, streamed: Streamed<S>): AsyncGenerator<MessageShape<S>> {
  const { schema, verb = 'GET', path, ask = {}, signal, isLast, onConnected } = streamed;
  let token = '';
  for (let failures = 0; !signal.aborted;) {
    try {
      const headers: Record<string, string> = token === '' ? {} : { 'last-event-id': token };
      const response = await api.send(verb, path, { ...ask, signal, headers });
      onConnected?.(true);
      for await (const { id, data } of frames(response.body!)) {
        failures = 0;
        const event = fromJsonString(schema, data, { ignoreUnknownFields: true });
        token = id || token;
        yield event;
        if (isLast(event)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    onConnected?.(false);
    await pause(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]!, signal);
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true });
  });

interface Frame {
  readonly id: string;
  readonly data: string;
}

/** Server-sent events of a body. EventSource can't send a key. */
async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const lines = part.split('\n');
        const told = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
        if (told('data') !== '') yield { id: told('id'), data: told('data') };
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
