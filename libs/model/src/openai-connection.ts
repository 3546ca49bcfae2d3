import { type CallLimits, HttpClient, InFlight, parsedJson, type ServerAnswer, abortError } from './http-client.js';
import { RETRY_POLICY, type RetryPolicy, type RetryTimers, withRetries } from './retry.js';
import type { ServerContext } from './server-errors.js';

export interface ConnectionOptions {
  /** Up to and with `/v1`. */
  readonly baseUrl: string;
  /** Absent: no Authorization header is sent. */
  readonly apiKey?: string;
  /** Calls under way at once; more wait in order. Default 16. */
  readonly concurrency?: number;
  readonly limits?: Partial<CallLimits>;
  readonly retry?: Partial<RetryPolicy>;
  readonly timers?: RetryTimers;
  /** HTTP proxy for all calls. */
  readonly proxyUrl?: string;
  /** Names of settings for error messages, where they differ from those of the chat model. */
  readonly settings?: ServerContext['settings'];
}

const LIMITS: CallLimits = { idleTimeoutMs: 300_000, callTimeoutMs: 900_000 };
const SETTINGS = { baseUrl: 'OPENAI_BASE_URL', apiKey: 'OPENAI_API_KEY', model: 'OPENAI_MODEL' };
const LIST_TIMEOUT_MS = 5_000;
const LIST_CHARS_MAX = 1024 * 1024;

/** Sends one request: a body to a path below the base URL. */
export type Send = (path: string, body: unknown) => Promise<ServerAnswer>;

/** Calls of one OpenAI-compatible server: kept-alive connections, bounded, repeated in one place, with typed errors. */
export class OpenAiConnection {
  readonly context: ServerContext;
  readonly #http: HttpClient;
  readonly #inFlight: InFlight;
  readonly #policy: RetryPolicy;
  readonly #timers: RetryTimers | undefined;

  constructor(options: ConnectionOptions) {
    const { baseUrl, apiKey, concurrency = 16 } = options;
    this.context = { baseUrl, ...(apiKey ? { apiKey } : {}), settings: options.settings ?? SETTINGS };
    this.#policy = { ...RETRY_POLICY, ...options.retry };
    this.#timers = options.timers;
    this.#inFlight = new InFlight(concurrency);
    this.#http = new HttpClient(this.context, { ...LIMITS, ...options.limits }, options.proxyUrl);
  }

  /**
   * Runs `exchange` until it succeeds, fails for good, or `signal` aborts.
   *
   * @throws EtudeError MODEL_*; an AbortError
   */
  call<T>(exchange: (send: Send) => Promise<T>, signal: AbortSignal): Promise<T> {
    const send: Send = (path, body) => this.#http.send(path, body, signal);
    return withRetries(() => this.#inFlight.run(() => exchange(send), signal), signal, this.#policy, this.#timers);
  }

  /**
   * The first model that the server lists, or `default`, which single-model servers take, where no list comes within 5 s.
   *
   * Asked once: the chat call matters, and its error says why a server can't be used.
   * @throws an AbortError
   */
  async firstModel(signal: AbortSignal): Promise<string> {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
    try {
      const answer = await this.#http.send('/models', undefined, bounded);
      const list = parsedJson(await answer.whole(LIST_CHARS_MAX)) as { data: Array<{ id: string }> };
      return list.data[0]?.id || 'default';
    } catch {
      if (signal.aborted) throw abortError(signal);
      return 'default';
    }
  }

  close(): void {
    this.#http.close();
  }
}
