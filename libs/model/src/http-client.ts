import { setImmediate } from 'node:timers/promises';
import { Agent, fetch as fetchWith, ProxyAgent, type RequestInit as FetchInit } from 'undici';

/** The error of an aborted call, whatever reason the caller gave; the reason is its `cause`. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  const error = new Error('the call of the model was aborted', { cause: reason });
  error.name = 'AbortError';
  return error;
}

/** Idle connections close soon: a server with one thread serves nobody else while one is open. */
const IDLE_HTTP_MS = 1_000;
/** Longer, since a TLS connection costs round trips to open, and such servers have threads. */
const IDLE_HTTPS_MS = 4_000;

/** `fetch` for the vendor's client. `CallWatch` bounds the time of a call, so that fetch's own five minutes don't apply. */
export function httpClient(baseUrl: string, proxyUrl?: string) {
  const secure = baseUrl.startsWith('https:');
  const keepAliveTimeout = secure ? IDLE_HTTPS_MS : IDLE_HTTP_MS;
  const options = { keepAliveTimeout, headersTimeout: 0, bodyTimeout: 0 };
  const dispatcher = proxyUrl ? new ProxyAgent({ uri: proxyUrl, proxyTunnel: secure, ...options }) : new Agent(options);
  const fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const to = new URL(url instanceof Request ? url.url : url);
    const headers = withCredentials(new Headers(init.headers), to);
    const sent = { ...(init as FetchInit), headers: Object.fromEntries(headers), dispatcher, redirect: 'manual' } as const;
    const response = (await fetchWith(to, sent)) as unknown as Response;
    if (response.ok) return response;
    return new Response(errorBody(await response.text()), { status: response.status, headers: response.headers });
  };
  return { fetch, close: () => void dispatcher.destroy() };
}

/** Moves name and password of the URL, which fetch refuses, into a header. */
function withCredentials(headers: Headers, url: URL): Headers {
  const { username, password } = url;
  if (username && !headers.has('authorization'))
    headers.set('authorization', `Basic ${Buffer.from(decodeURIComponent(`${username}:${password}`)).toString('base64')}`);
  Object.assign(url, { username: '', password: '' });
  return headers;
}

/** As the vendor's client reads it, `{"error": {"message"}}`; other servers say it in `detail`, `message`, or plain text. */
function errorBody(text: string): string | null {
  if (text.trim() === '') return null;
  const body = parsedObject(text);
  if (typeof body?.['error'] === 'object' && body['error'] !== null) return text;
  const said = [body?.['error'], body?.['message'], body?.['detail']].find((words) => typeof words === 'string');
  const message = said ?? (body ? text : text.replace(/<(style|script|head)[\s\S]*?<\/\1>|<[^>]*>/g, ' '));
  return JSON.stringify({ error: { message, code: body?.['code'] } });
}

function parsedObject(text: string): Record<string, unknown> | null {
  const value = parsedJson(text);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
}

/** Undefined where the text is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface CallLimits {
  /** Longest silence of the server, before and inside its answer. */
  readonly idleTimeoutMs: number;
  /** From the request to the end of its answer. */
  readonly callTimeoutMs: number;
}

/** How long a body may go on once its answer is complete: for the usage, and for the end that lets a connection be used again. */
const REST_MS = 2_000;

/** Ends one HTTP exchange when its caller aborts, the server falls silent, or it takes too long. */
export class CallWatch {
  /** Why the exchange was ended here; null where it was not, or by the caller. */
  expired: 'idle' | 'call' | 'rest' | null = null;
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #idle: NodeJS.Timeout;
  readonly #call: NodeJS.Timeout;
  #rest: NodeJS.Timeout | undefined;
  readonly #abort = () => this.#controller.abort(this.#caller.reason);

  constructor(caller: AbortSignal, limits: CallLimits) {
    this.#caller = caller;
    this.#idle = setTimeout(() => this.#expire('idle'), limits.idleTimeoutMs);
    this.#call = setTimeout(() => this.#expire('call'), limits.callTimeoutMs);
    caller.addEventListener('abort', this.#abort, { once: true });
    if (caller.aborted) this.#abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The text of a body as it comes. A body that breaks off just ends: what came decides. @throws when the watch ends the exchange */
  async *textOf(response: Response): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of response.body ?? []) {
        this.#idle.refresh();
        yield decoder.decode(bytes, { stream: true });
      }
      // The connection is free again one turn later; without waiting, the next call would open a second one.
      await setImmediate();
    } catch (error) {
      if (this.signal.aborted && this.expired !== 'rest') throw error;
    }
  }

  /** The answer is complete: the rest of its body may follow briefly. */
  complete(): void {
    this.#rest ??= setTimeout(() => this.#expire('rest'), REST_MS);
  }

  end(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#call);
    clearTimeout(this.#rest);
    this.#caller.removeEventListener('abort', this.#abort);
  }

  #expire(why: NonNullable<CallWatch['expired']>): void {
    this.expired = why;
    this.#controller.abort();
  }
}

/** Bounds how many calls run at once; the others wait in order. */
export class InFlight {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(max: number) {
    this.#free = max;
  }

  /** @throws AbortError when `signal` aborts while the task waits */
  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (signal.aborted) throw abortError(signal);
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    try {
      return await task();
    } finally {
      const [next] = this.#waiting;
      if (next) next();
      else this.#free++;
    }
  }

  /** The place of a call that ends goes to the next in line. */
  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(take);
        signal.removeEventListener('abort', giveUp);
      };
      const take = () => {
        leave();
        resolve();
      };
      const giveUp = () => {
        leave();
        reject(abortError(signal));
      };
      this.#waiting.add(take);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }
}
