import { EtudeError } from '@etude/contracts/errors';
import OpenAI, { APIConnectionError, APIError } from 'openai';
import { RETRY_POLICY, type RetryPolicy, type RetryTimers, withRetries } from './retry.js';
import { faultError, quoted, retryAfterMs, type ServerContext, serverName } from './server-errors.js';
import { abortError, InFlight, type Progress, pumpBody, Transport } from './transport.js';

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

/** One HTTP exchange: send with `signal`, then `read` the body of the response, or its `text` up to so many characters. */
export interface Exchange {
  readonly client: OpenAI;
  readonly signal: AbortSignal;
  readonly read: (response: Response, push: (text: string) => Progress) => Promise<void>;
  readonly text: (response: Response, charsMax: number) => Promise<string>;
}

/** Calls of one OpenAI-compatible server: kept-alive connections, bounded, repeated in one place, with typed errors. */
export class OpenAiConnection {
  readonly context: ServerContext;
  readonly #client: OpenAI;
  readonly #transport: Transport;
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
    this.#transport = new Transport(options.proxyUrl);
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
      fetch: this.#transport.fetch,
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
    this.#transport.close();
  }

  /** The same without repeating it. */
  async once<T>(exchange: (exchange: Exchange) => Promise<T>, signal: AbortSignal): Promise<T> {
    const leave = await this.#inFlight.enter(signal);
    const watch = new CallWatch(signal, this.#limits);
    try {
      return await exchange(this.#exchange(watch));
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      throw this.#typed(error, watch.expired);
    } finally {
      watch.end();
      leave();
    }
  }

  #exchange(watch: CallWatch): Exchange {
    const read = (response: Response, push: (text: string) => Progress) => {
      watch.touch();
      return pumpBody(this.#transport.bodyOf(response), watch, push);
    };
    const text = async (response: Response, charsMax: number) => {
      let whole = '';
      await read(response, (part) => ((whole += part).length > charsMax ? 'full' : 'more'));
      return whole;
    };
    return { client: this.#client, signal: watch.signal, read, text };
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
    const cause = error.cause as (Error & { reusedSocket?: boolean }) | undefined;
    const why = quoted(cause?.message ?? error.message, this.context);
    const details = cause?.reusedSocket ? { retryAfterMs: 0 } : {};
    return new EtudeError('MODEL_UNAVAILABLE', `${serverName(this.context)} can't be reached: ${why}.`, details, { cause: error });
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

export interface CallLimits {
  /** Longest silence of the server, before and inside its answer. */
  readonly idleTimeoutMs: number;
  /** From the request to the end of its answer. */
  readonly callTimeoutMs: number;
}

/** Ends one HTTP exchange when its caller aborts, the server falls silent, or it takes too long. */
export class CallWatch {
  /** Why the exchange was ended here; null where it was not, or by the caller. */
  expired: 'idle' | 'call' | null = null;
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #idle: NodeJS.Timeout;
  readonly #call: NodeJS.Timeout;
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

  /** Bytes came. */
  touch(): void {
    this.#idle.refresh();
  }

  end(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#call);
    this.#caller.removeEventListener('abort', this.#abort);
  }

  #expire(why: 'idle' | 'call'): void {
    this.expired = why;
    this.#controller.abort();
  }
}

const LIST_CHARS_MAX = 4 * 1024 * 1024;
const LIST_TIMEOUT_MS = 5_000;

/**
 * The first model that a server lists, or `default`, which single-model servers take, where no list comes within 5 s.
 *
 * Asked once: it is the chat call that matters, and that one says why a server can't be used.
 * @throws an AbortError
 */
export async function firstModel(connection: OpenAiConnection, signal: AbortSignal): Promise<string> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
  const list = await connection.once(listed, bounded).catch(() => {
    if (signal.aborted) throw abortError(signal);
    return '';
  });
  return firstId(list) ?? 'default';
}

async function listed({ client, signal, text }: Exchange): Promise<string> {
  return text(await client.models.list({ signal }).asResponse(), LIST_CHARS_MAX);
}

function firstId(text: string): string | null {
  try {
    const { data } = JSON.parse(text) as { data?: Array<{ id?: unknown }> };
    const id = Array.isArray(data) ? data[0]?.id : undefined;
    return typeof id === 'string' && id !== '' ? id : null;
  } catch {
    return null;
  }
}
