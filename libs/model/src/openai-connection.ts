import { EtudeError } from '@etude/contracts/errors';
import OpenAI, { APIConnectionError, APIError } from 'openai';
import { RETRY_POLICY, type RetryPolicy, type RetryTimers, withRetries } from './retry.js';
import { faultError, quoted, retryAfterMs, type ServerContext, serverName } from './server-errors.js';
import { abortError, type CallLimits, CallWatch, httpClient, InFlight } from './http-client.js';

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

/** One HTTP exchange: sent with the client and the watch's signal, read by the watch. */
export interface Exchange {
  readonly client: OpenAI;
  readonly watch: CallWatch;
}

/** Calls of one OpenAI-compatible server: kept-alive connections, bounded, repeated in one place, with typed errors. */
export class OpenAiConnection {
  readonly context: ServerContext;
  readonly #client: OpenAI;
  readonly #http: ReturnType<typeof httpClient>;
  readonly #inFlight: InFlight;
  readonly #limits: CallLimits;
  readonly #policy: RetryPolicy;
  readonly #timers: RetryTimers | undefined;

  constructor(options: ConnectionOptions) {
    const { baseUrl, apiKey, concurrency = 16 } = options;
    this.context = { baseUrl, ...(apiKey ? { apiKey } : {}), settings: options.settings ?? SETTINGS };
    this.#limits = { ...LIMITS, ...options.limits };
    this.#policy = { ...RETRY_POLICY, ...options.retry };
    this.#timers = options.timers;
    this.#inFlight = new InFlight(concurrency);
    this.#http = httpClient(baseUrl, options.proxyUrl);
    this.#client = new OpenAI({
      baseURL: baseUrl,
      apiKey: apiKey ?? 'none',
      // Given, so that the client reads none of them from the environment.
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      logLevel: 'off',
      maxRetries: 0,
      timeout: this.#limits.callTimeoutMs + 60_000,
      fetch: this.#http.fetch,
      ...(apiKey ? {} : { defaultHeaders: { Authorization: null } }),
    });
  }

  /**
   * Runs `exchange` until it succeeds, fails for good, or `signal` aborts.
   *
   * @throws EtudeError MODEL_*; an AbortError
   */
  call<T>(exchange: (exchange: Exchange) => Promise<T>, signal: AbortSignal): Promise<T> {
    return withRetries(() => this.once(exchange, signal), signal, this.#policy, this.#timers);
  }

  close(): void {
    this.#http.close();
  }

  /** The same without repeating it. */
  async once<T>(exchange: (exchange: Exchange) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#inFlight.run(async () => {
      const watch = new CallWatch(signal, this.#limits);
      try {
        return await exchange({ client: this.#client, watch });
      } catch (error) {
        if (signal.aborted) throw abortError(signal);
        throw this.#typed(error, watch.expired);
      } finally {
        watch.end();
      }
    }, signal);
  }

  #typed(error: unknown, expired: CallWatch['expired']): unknown {
    const name = serverName(this.context);
    if (expired === 'idle') return new EtudeError('MODEL_UNAVAILABLE', `${name} sent nothing for ${this.#limits.idleTimeoutMs / 1000} s.`);
    if (expired === 'call')
      return new EtudeError('MODEL_UNAVAILABLE', `${name} did not finish its answer within ${this.#limits.callTimeoutMs / 1000} s.`);
    if (error instanceof APIConnectionError) return this.#unreachable(error);
    if (error instanceof APIError && error.status !== undefined) return faultError(faultOf(error), this.context);
    return error;
  }

  #unreachable(error: APIConnectionError): EtudeError {
    // fetch fails with "fetch failed"; the reason is below it.
    const { cause } = (error.cause ?? {}) as Error;
    const reason = (cause ?? error.cause ?? error) as Error & { code?: string };
    const why = quoted(reason.code ? `${reason.code}: ${reason.message}` : reason.message, this.context);
    return new EtudeError('MODEL_UNAVAILABLE', `${serverName(this.context)} can't be reached: ${why}.`, {}, { cause: error });
  }
}

function faultOf(error: APIError) {
  const after = retryAfterMs(error.headers, Date.now());
  const location = error.headers?.get('location');
  return {
    status: error.status ?? 500,
    message: /^\d{3} status code \(no body\)$/.test(error.message) ? '' : error.message.replace(/^\d{3} /, ''),
    ...(typeof error.code === 'string' ? { code: error.code } : {}),
    ...(after === undefined ? {} : { retryAfterMs: after }),
    ...(location ? { location } : {}),
  };
}

const LIST_TIMEOUT_MS = 5_000;

/**
 * The first model that a server lists, or `default`, which single-model servers take, where no list comes within 5 s.
 *
 * Asked once: it is the chat call that matters, and that one says why a server can't be used.
 * @throws an AbortError
 */
export async function firstModel(connection: OpenAiConnection, signal: AbortSignal): Promise<string> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
  try {
    const page = await connection.once(async ({ client, watch }) => client.models.list({ signal: watch.signal }), bounded);
    return page.data[0]?.id || 'default';
  } catch {
    if (signal.aborted) throw abortError(signal);
    return 'default';
  }
}
