import { once } from 'node:events';
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { abortError, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';
import { quoted, refusal, ServerAnswer, type ServerContext, serverName } from './server-answer.js';
import { type RetryPolicy, type RetryTimers, withRetries } from './retry.js';

interface CallLimits {
  /** The longest time without data from the server, before or within its answer. */
  readonly idleTimeoutMs: number;
  /** The longest time from the request to the end of its answer. It includes the wait for a free connection. */
  readonly callTimeoutMs: number;
}

export interface ConnectionOptions {
  /** Address of the server. It usually ends with `/v1`. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** The most connections, and so the most calls at the same time. Further calls wait. */
  readonly concurrency: number;
  readonly limits: CallLimits;
  readonly retry: RetryPolicy;
  readonly timers?: RetryTimers;
  readonly proxyUrl?: string;
  /** Unix socket of a server on this machine, instead of the host and port of `baseUrl`. */
  readonly socketPath?: string;
  /** Names of the settings for error messages. Default: the chat model's settings. */
  readonly settings?: ServerContext['settings'];
}

const SETTINGS = { baseUrl: 'OPENAI_BASE_URL', apiKey: 'OPENAI_API_KEY', model: 'OPENAI_MODEL' };
const LIST_TIMEOUT_MS = 5_000;
const LIST_CHARS_MAX = 1024 * 1024;
/** An idle HTTP connection closes after this time. It is short, because an open connection blocks a server with one thread. */
const IDLE_HTTP_MS = 1_000;
/** An idle HTTPS connection stays open longer, because opening one costs round trips, and HTTPS servers have more threads. */
const IDLE_HTTPS_MS = 4_000;

export type Send = (path: string, body: unknown) => Promise<ServerAnswer>;

/** Calls one OpenAI-compatible server. It limits concurrent calls, keeps connections alive, retries, and throws typed errors. */
export class OpenAiConnection {
  readonly context: ServerContext;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #request: typeof httpRequest;
  readonly #agent: HttpAgent;

  constructor(private readonly options: ConnectionOptions) {
    const { baseUrl, apiKey, settings = SETTINGS, concurrency, proxyUrl } = options;
    this.context = { baseUrl, ...(apiKey ? { apiKey } : {}), settings };
    this.#headers = { accept: '*/*', 'user-agent': 'etude', ...(apiKey ? { authorization: `Bearer ${apiKey}` } : {}) };
    const isSecure = new URL(baseUrl).protocol === 'https:';
    const proxyEnv = proxyUrl ? { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl } : undefined;
    const agent = { keepAlive: true, maxSockets: concurrency, timeout: isSecure ? IDLE_HTTPS_MS : IDLE_HTTP_MS, proxyEnv };
    this.#request = isSecure ? httpsRequest : httpRequest;
    this.#agent = isSecure ? new HttpsAgent(agent) : new HttpAgent(agent);
  }

  /** Repeats `exchange` until it succeeds, `signal` aborts, or an error isn't retryable. @throws EtudeError MODEL_*; an AbortError */
  call<T>(exchange: (send: Send) => Promise<T>, signal: AbortSignal): Promise<T> {
    const send: Send = (path, body) => this.#send(path, body, signal);
    return withRetries(() => exchange(send), signal, this.options.retry, this.options.timers);
  }

  /**
   * The first model that the server lists. If it sends no list within 5 s, `default`, which servers with a single model accept.
   *
   * There is no retry. If the server can't be used, the error of the following chat call says why.
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
    this.#agent.destroy();
  }

  async #send(path: string, body: unknown, caller: AbortSignal): Promise<ServerAnswer> {
    const { baseUrl, limits, socketPath } = this.options;
    const url = new URL(baseUrl);
    url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`;
    const silence = new AbortController();
    const ends = { caller, silence: silence.signal, late: AbortSignal.timeout(limits.callTimeoutMs) };
    const signal = AbortSignal.any(Object.values(ends));
    const sent =
      body === undefined
        ? { method: 'GET', headers: this.#headers }
        : { method: 'POST', headers: { ...this.#headers, 'content-type': 'application/json' } };
    try {
      const request = this.#request(url, { ...sent, agent: this.#agent, signal, timeout: limits.idleTimeoutMs, socketPath });
      // Without a listener the error would end the process. The promises below report it.
      request.on('error', () => undefined);
      request.on('timeout', () => silence.abort());
      request.end(body === undefined ? undefined : JSON.stringify(body));
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      const answer = new ServerAnswer(response, signal, (error) => this.#typed(error, ends));
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode <= 299) return answer;
      throw await refusal(statusCode, answer, this.context);
    } catch (error) {
      throw this.#typed(error, ends);
    }
  }

  #typed(error: unknown, { caller, silence, late }: Readonly<Record<'caller' | 'silence' | 'late', AbortSignal>>): unknown {
    if (caller.aborted) return abortError(caller);
    if (error instanceof EtudeError) return error;
    const { idleTimeoutMs, callTimeoutMs } = this.options.limits;
    const { code, message } = error as Error & { code?: string };
    const why = late.aborted
      ? `did not finish its answer within ${callTimeoutMs / 1000} s`
      : silence.aborted
        ? `sent nothing for ${idleTimeoutMs / 1000} s`
        : `can't be reached: ${quoted(code ? `${code}: ${message}` : message, this.context)}`;
    return new EtudeError('MODEL_UNAVAILABLE', `${serverName(this.context)} ${why}.`, {}, { cause: error });
  }
}
