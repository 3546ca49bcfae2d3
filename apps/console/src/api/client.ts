import { type DescMessage, fromJson, fromJsonString, type JsonValue, type MessageShape } from '@bufbuild/protobuf';
import { keepPreviousData, useMutation, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import { createContext, useContext } from 'react';

type Verb = 'GET' | 'POST' | 'PATCH' | 'DELETE';
/** Fields of a request, by their proto names. Empty fields are left out. */
export type Fields = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface Ask {
  readonly query?: Fields;
  readonly body?: unknown;
  /** Sent unchanged, instead of `body`. */
  readonly bytes?: Blob;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A refused call, with its code from docs/errors.md. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

const UNREACHABLE = 'The gateway does not answer. Check that it runs (./etude status) and that this machine reaches it.';

/** The gateway's public HTTP API, called with one key. The key never leaves this object, except in calls. */
export class Api {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  /** @throws ApiError */
  async call<S extends DescMessage>(answer: S, verb: Verb, path: string, ask: Ask = {}): Promise<MessageShape<S>> {
    const response = await this.send(verb, path, ask);
    return fromJson(answer, (await response.json()) as JsonValue, { ignoreUnknownFields: true });
  }

  /** @throws ApiError if the call is refused or the gateway is unreachable */
  async send(verb: Verb, path: string, { query = {}, body, bytes, signal, headers }: Ask = {}): Promise<Response> {
    const json = body === undefined ? undefined : JSON.stringify(body);
    const type = bytes === undefined ? 'application/json' : bytes.type || 'application/octet-stream';
    const response = await fetch(`${path}${queryText(query)}`, {
      method: verb,
      headers: { authorization: `Bearer ${this.#key}`, 'content-type': type, ...headers },
      body: bytes ?? json ?? null,
      signal: signal ?? null,
      cache: 'no-store',
      credentials: 'omit',
    }).catch((error: unknown) => {
      if (signal?.aborted) throw error;
      throw new ApiError(0, 'UNREACHABLE', UNREACHABLE);
    });
    if (!response.ok) throw await refusalOf(response);
    return response;
  }
}

async function refusalOf(response: Response): Promise<ApiError> {
  const { error } = (await response.json().catch(() => ({}))) as { error?: { code: string; message: string } };
  return new ApiError(response.status, error?.code ?? 'UNKNOWN', error?.message ?? `The gateway answered with status ${response.status}.`);
}

function queryText(query: Fields): string {
  const entries = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [value].flat().map((one) => [name, String(one)]),
  );
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries)}`;
}

export const ApiContext = createContext<Api | null>(null);

export function useApi(): Api {
  const api = useContext(ApiContext);
  if (api === null) throw new Error('no one is signed in');
  return api;
}

interface ReadOptions<T = unknown> {
  /** How often the page reads again while it is visible, in ms, or a function of the last answer. false: only when the page is shown again. */
  readonly everyMs?: number | false | ((last: T | undefined) => number | false);
  readonly enabled?: boolean;
  /** Reads by POST with this body, as searches do. */
  readonly body?: Readonly<Record<string, unknown>>;
}

export type Read<T> = UseQueryResult<T, ApiError>;

/** The answer of a reading call. It stays until the next answer arrives. */
export function useRead<S extends DescMessage>(
  schema: S,
  path: string,
  query: Fields = {},
  { everyMs = false, enabled = true, body }: ReadOptions<MessageShape<S>> = {},
): Read<MessageShape<S>> {
  const api = useApi();
  return useQuery<MessageShape<S>, ApiError>({
    queryKey: [path, query, body],
    queryFn: ({ signal }) => api.call(schema, body ? 'POST' : 'GET', path, { query, body, signal }),
    placeholderData: keepPreviousData,
    structuralSharing: false,
    refetchInterval: typeof everyMs === 'function' ? ({ state }) => everyMs(state.data) : everyMs,
    enabled,
  });
}

/** A call that changes something. Afterwards the page reads all its data again. */
export function useAct<Input, Result>(act: (api: Api, input: Input) => Promise<Result>) {
  const api = useApi();
  const client = useQueryClient();
  return useMutation<Result, ApiError, Input>({
    mutationFn: (input) => act(api, input),
    onSuccess: () => void client.invalidateQueries(),
  });
}

/** An id that makes a repeat of a change harmless. */
export const requestId = () => crypto.randomUUID();

const RETRY_MS = [250, 1_000, 3_000, 10_000];

export interface Streamed<S extends DescMessage> {
  readonly schema: S;
  readonly verb?: Verb;
  readonly path: string;
  readonly ask?: Ask;
  readonly signal: AbortSignal;
  readonly isLast: (event: MessageShape<S>) => boolean;
  /** Called with false while the connection is lost, and with true when it is back. */
  readonly onConnected?: (connected: boolean) => void;
}

/** After a lost connection, resumes after the last event seen. @throws ApiError if the gateway refuses the call */
export async function* follow<S extends DescMessage>(api: Api, streamed: Streamed<S>): AsyncGenerator<MessageShape<S>> {
  const { schema, verb = 'GET', path, ask = {}, signal, isLast, onConnected } = streamed;
  let token = '';
  for (let failures = 0; !signal.aborted;) {
    try {
      const headers: Record<string, string> = token === '' ? {} : { 'last-event-id': token };
      const response = await api.send(verb, path, { ...ask, signal, headers });
      onConnected?.(true);
      for await (const { id, data } of eventsOf(response.body!)) {
        failures = 0;
        const event = fromJsonString(schema, data, { ignoreUnknownFields: true });
        token = id ?? token;
        yield event;
        if (isLast(event)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
    }
    onConnected?.(false);
    await new Promise((done) => setTimeout(done, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]));
  }
}

/** Server-sent events of a body. EventSource can't send a key. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<EventSourceMessage> {
  const decoder = new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>;
  const reader = body.pipeThrough(decoder).pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
