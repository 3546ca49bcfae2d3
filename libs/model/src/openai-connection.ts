import { abortError, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import type { Dispatcher } from 'undici';
import { isSilence, quoted, refusal, ServerAnswer, type ServerContext, serverName } from './server-answer.js';
import { type RetryPolicy, type RetryTimers, withRetries } from './retry.js';

export interface CallLimits {
  /** The longest silence of the server, before or within its answer. */
  readonly idleTimeoutMs: number;
  /** The longest time from the request to the end of its answer, with the wait for a free connection. */
  readonly callTimeoutMs: number;
}

export interface ConnectionOptions {
  /** Usually ends with `/v1`. */
  readonly baseUrl: string;
  /** Absent: no Authorization header is sent. */
  readonly apiKey?: string;
  /** The most connections, and so the most calls at once; further calls wait. */
  readonly concurrency: number;
  readonly limits: CallLimits;
  readonly retry: RetryPolicy;
  readonly timers?: RetryTimers;
  /** HTTP proxy for all calls. */
  readonly proxyUrl?: string;
  /** Names of the settings for error messages. Default: those of the chat model. */
  readonly settings?: ServerContext['settings'];
}

const SETTINGS = { baseUrl: 'OPENAI_BASE_URL', apiKey: 'OPENAI_API_KEY', model: 'OPENAI_MODEL' };
const LIST_TIMEOUT_MS = 5_000;
const LIST_CHARS_MAX = 1024 * 1024;
/** When an idle HTTP connection closes. It is soon, because a server with one thread serves nobody else while a connection is open. */
const IDLE_HTTP_MS = 1_000;
/** The same for HTTPS. It is longer, because opening a TLS connection costs round trips and such servers have more threads. */
const IDLE_HTTPS_MS = 4_000;

/** Sends one request with `body` to a path below the base URL. */
export type Send = (path: string, body: unknown) => Promise<ServerAnswer>;

/** Calls one OpenAI-compatible server: limits calls at once, keeps connections alive, retries, and throws typed errors. */
export class OpenAiConnection {
  readonly context: ServerContext;
  readonly #headers: Readonly<Record<string, string>>;
  #dispatcher: Promise<Dispatcher> | null = null;

  constructor(private readonly options: ConnectionOptions) {
    const { baseUrl, apiKey, settings = SETTINGS } = options;
    this.context = { baseUrl, ...(apiKey ? { apiKey } : {}), settings };
    const { username, password } = new URL(baseUrl);
    const basic = Buffer.from(decodeURIComponent(`${username}:${password}`)).toString('base64');
    const authorization = apiKey ? `Bearer ${apiKey}` : username ? `Basic ${basic}` : undefined;
    this.#headers = { accept: '*/*', 'user-agent': 'etude', ...(authorization ? { authorization } : {}) };
  }

  /** The HTTP client is imported by the first call, because it costs 13 MiB of memory. */
  async #openDispatcher(): Promise<Dispatcher> {
    const { Agent, ProxyAgent } = await import('undici');
    const { baseUrl, concurrency, limits, proxyUrl } = this.options;
    const secure = new URL(baseUrl).protocol === 'https:';
    const agent = {
      connections: concurrency,
      keepAliveTimeout: secure ? IDLE_HTTPS_MS : IDLE_HTTP_MS,
      headersTimeout: limits.idleTimeoutMs,
      bodyTimeout: limits.idleTimeoutMs,
    };
    return proxyUrl ? new ProxyAgent({ uri: proxyUrl, proxyTunnel: secure, ...agent }) : new Agent(agent);
  }

  /**
   * Runs `exchange` until it succeeds, fails for good, or `signal` aborts.
   *
   * @throws EtudeError MODEL_*; an AbortError
   */
  call<T>(exchange: (send: Send) => Promise<T>, signal: AbortSignal): Promise<T> {
    const send: Send = (path, body) => this.#send(path, body, signal);
    return withRetries(() => exchange(send), signal, this.options.retry, this.options.timers);
  }

  /**
   * The first model that the server lists. If no list comes within 5 s, `default`, which servers with a single model accept.
   *
   * It is not retried: the chat call that follows says in its error why the server can't be used.
   * @throws an AbortError
   */
  async firstModel(signal: AbortSignal): Promise<string> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
    try {
      const answer = await this.#send('/models', undefined, bounded);
      const list = parsedJson(await answer.whole(LIST_CHARS_MAX)) as { data: Array<{ id: string }> };
      return list.data[0]?.id || 'default';
    } catch {
      if (signal.aborted) throw abortError(signal);
      return 'default';
    }
  }

  close(): void {
    void this.#dispatcher?.then((dispatcher) => dispatcher.destroy());
  }

  /** Posts `body` as JSON to a path below the base URL, or gets the path if there is no body. */
  async #send(path: string, body: unknown, caller: AbortSignal): Promise<ServerAnswer> {
    const url = new URL(this.options.baseUrl);
    url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`;
    const signal = AbortSignal.any([caller, AbortSignal.timeout(this.options.limits.callTimeoutMs)]);
    const sent =
      body === undefined
        ? { method: 'GET' as const, headers: this.#headers }
        : { method: 'POST' as const, headers: { ...this.#headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
    try {
      const dispatcher = await (this.#dispatcher ??= this.#openDispatcher());
      const { request } = await import('undici');
      const response = await request(url, { ...sent, signal, dispatcher });
      const answer = new ServerAnswer(response, signal, (error) => this.#typed(error, caller, signal));
      if (response.statusCode >= 200 && response.statusCode <= 299) return answer;
      throw await refusal(response.statusCode, answer, this.context);
    } catch (error) {
      throw this.#typed(error, caller, signal);
    }
  }

  #typed(error: unknown, caller: AbortSignal, signal: AbortSignal): unknown {
    if (caller.aborted) return abortError(caller);
    if (error instanceof EtudeError) return error;
    const { idleTimeoutMs, callTimeoutMs } = this.options.limits;
    const { code, message } = error as Error & { code?: string };
    const why = signal.aborted
      ? `did not finish its answer within ${callTimeoutMs / 1000} s`
      : isSilence(error)
        ? `sent nothing for ${idleTimeoutMs / 1000} s`
        : `can't be reached: ${quoted(code ? `${code}: ${message}` : message, this.context)}`;
    return new EtudeError('MODEL_UNAVAILABLE', `${serverName(this.context)} ${why}.`, {}, { cause: error });
  }
}
