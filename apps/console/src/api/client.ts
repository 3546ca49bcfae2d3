import { type DescMessage, fromJson, type JsonValue, type MessageShape } from '@bufbuild/protobuf';

export type Verb = 'GET' | 'POST' | 'PATCH' | 'DELETE';
/** Fields of a request, under the names of the proto files. Empty ones are left out. */
export type Fields = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface Ask {
  readonly query?: Fields;
  readonly body?: unknown;
  /** Sent unchanged, instead of `body`. */
  readonly bytes?: Blob;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A refusal, with the code of docs/errors.md. */
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

/** The gateway's public HTTP API, called with one key. The key stays in this object. */
export class Api {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  /** The answer of a call. @throws ApiError */
  async call<S extends DescMessage>(answer: S, verb: Verb, path: string, ask: Ask = {}): Promise<MessageShape<S>> {
    const response = await this.send(verb, path, ask);
    return fromJson(answer, (await response.json()) as JsonValue, { ignoreUnknownFields: true });
  }

  /** A response that was not refused. @throws ApiError */
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

/** An id that makes a repeat of a change harmless. */
export const requestId = () => crypto.randomUUID();
