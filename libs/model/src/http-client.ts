import { EtudeError } from '@etude/contracts/errors';
import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { Agent, type Dispatcher, ProxyAgent, request } from 'undici';
import { faultError, faultIn, quoted, retryAfterMs, type ServerContext, serverName } from './server-errors.js';

/** The error of an aborted call, whatever reason the caller gave; the reason is its `cause`. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  const error = new Error('the call of the model was aborted', { cause: reason });
  error.name = 'AbortError';
  return error;
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

/** Idle connections close soon: a server with one thread serves nobody else while one is open. */
const IDLE_HTTP_MS = 1_000;
/** Longer, since a TLS connection costs round trips to open, and such servers have threads. */
const IDLE_HTTPS_MS = 4_000;
/** A body may go on for so long after its finish reason, for the usage, or unread after its end, to free the connection. */
const REST_MS = 2_000;

/** Makes requests of one server over kept-alive connections. */
export class HttpClient {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #dispatcher: Dispatcher;
  readonly #context: ServerContext;
  readonly #limits: CallLimits;

  constructor(context: ServerContext, limits: CallLimits, proxyUrl?: string) {
    this.#context = context;
    this.#limits = limits;
    this.#base = new URL(context.baseUrl);
    const { username, password, protocol } = this.#base;
    const basic = Buffer.from(decodeURIComponent(`${username}:${password}`)).toString('base64');
    const authorization = context.apiKey ? `Bearer ${context.apiKey}` : username ? `Basic ${basic}` : undefined;
    this.#headers = { accept: '*/*', 'user-agent': 'etude', ...(authorization ? { authorization } : {}) };
    const secure = protocol === 'https:';
    const { idleTimeoutMs } = limits;
    const keepAliveTimeout = secure ? IDLE_HTTPS_MS : IDLE_HTTP_MS;
    const options = { keepAliveTimeout, headersTimeout: idleTimeoutMs, bodyTimeout: idleTimeoutMs };
    this.#dispatcher = proxyUrl ? new ProxyAgent({ uri: proxyUrl, proxyTunnel: secure, ...options }) : new Agent(options);
  }

  /**
   * Posts `body` as JSON to a path below the base URL, or gets the path where there is no body.
   *
   * @throws EtudeError MODEL_*, also when the server refuses; an AbortError
   */
  async send(path: string, body: unknown, caller: AbortSignal): Promise<ServerAnswer> {
    const url = new URL(this.#base);
    url.pathname = `${url.pathname.replace(/\/$/, '')}${path}`;
    const signal = AbortSignal.any([caller, AbortSignal.timeout(this.#limits.callTimeoutMs)]);
    const sent =
      body === undefined
        ? { method: 'GET' as const, headers: this.#headers }
        : { method: 'POST' as const, headers: { ...this.#headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
    try {
      const response = await request(url, { ...sent, signal, dispatcher: this.#dispatcher });
      const answer = new ServerAnswer(response, signal, (error) => this.#typed(error, caller, signal));
      if (response.statusCode >= 200 && response.statusCode <= 299) return answer;
      throw await refusal(response.statusCode, answer, this.#context);
    } catch (error) {
      throw this.#typed(error, caller, signal);
    }
  }

  close(): void {
    void this.#dispatcher.destroy();
  }

  #typed(error: unknown, caller: AbortSignal, signal: AbortSignal): unknown {
    if (caller.aborted) return abortError(caller);
    if (error instanceof EtudeError) return error;
    const name = serverName(this.#context);
    const { idleTimeoutMs, callTimeoutMs } = this.#limits;
    const unavailable = (message: string) => new EtudeError('MODEL_UNAVAILABLE', `${name} ${message}.`, {}, { cause: error });
    if (signal.aborted) return unavailable(`did not finish its answer within ${callTimeoutMs / 1000} s`);
    const { code, message } = error as Error & { code?: string };
    if (isSilence(error)) return unavailable(`sent nothing for ${idleTimeoutMs / 1000} s`);
    return unavailable(`can't be reached: ${quoted(code ? `${code}: ${message}` : message, this.#context)}`);
  }
}

const isSilence = (error: unknown) => /^UND_ERR_(HEADERS|BODY)_TIMEOUT$/.test(String((error as { code?: unknown }).code));

/** The answer of a server, whose body is still to be read. */
export class ServerAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly #body: Dispatcher.ResponseData['body'];
  readonly #signal: AbortSignal;
  readonly #typed: (error: unknown) => unknown;
  #rest: NodeJS.Timeout | undefined;

  constructor({ headers, body }: Dispatcher.ResponseData, signal: AbortSignal, typed: (error: unknown) => unknown) {
    this.headers = headers;
    this.#body = body;
    this.#signal = signal;
    this.#typed = typed;
  }

  /**
   * The text of the body as it comes. A body that breaks off just ends: what came decides.
   *
   * A reader that stops early waits for nothing; the connection is used again if the body ends soon.
   * @throws EtudeError MODEL_UNAVAILABLE after silence or too long a call; an AbortError
   */
  async *text(): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of this.#body.iterator({ destroyOnReturn: false })) yield decoder.decode(bytes, { stream: true });
    } catch (error) {
      if (this.#signal.aborted || isSilence(error)) throw this.#typed(error);
    } finally {
      clearTimeout(this.#rest);
      // What follows in the same packet is read within one turn, after which the next call finds the connection free.
      void this.#body.dump({ limit: 65_536, signal: AbortSignal.timeout(REST_MS) }).catch(() => {});
      await setImmediate();
    }
  }

  /** The body up to so many characters. */
  async whole(charsMax: number): Promise<string> {
    let text = '';
    for await (const part of this.text()) if ((text += part).length > charsMax) break;
    return text;
  }

  /** All that is needed came: the rest of the body may follow briefly. */
  finishSoon(): void {
    this.#rest ??= setTimeout(() => this.#body.destroy(), REST_MS);
  }
}

const ERROR_CHARS_MAX = 65_536;

/** Servers say why in `error.message`, `error`, `message`, `detail` or plain text. */
async function refusal(status: number, answer: ServerAnswer, context: ServerContext): Promise<EtudeError> {
  const text = await answer.whole(ERROR_CHARS_MAX);
  const { headers } = answer;
  const value = parsedJson(text);
  const body = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  const said = [body?.['error'], body?.['message'], body?.['detail']].find((part) => typeof part === 'string' || typeof part === 'object');
  const plain = body ? text : text.replace(/<(style|script|head)[\s\S]*?<\/\1>|<[^>]*>/g, ' ');
  const { message, code = body?.['code'] } = faultIn(said ?? { message: plain }) as { message: string; code?: unknown };
  const after = retryAfterMs(headers, Date.now());
  return faultError(
    {
      status,
      message,
      ...(typeof code === 'string' ? { code } : {}),
      ...(after === undefined ? {} : { retryAfterMs: after }),
      ...(headers.location ? { location: headers.location } : {}),
    },
    context,
  );
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
      // The place of a call that ends goes to the next in line.
      if (next) next();
      else this.#free++;
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const take = () => {
      this.#waiting.delete(take);
      resolve();
    };
    const giveUp = () => {
      this.#waiting.delete(take);
      reject(abortError(signal));
    };
    this.#waiting.add(take);
    signal.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
  }
}
