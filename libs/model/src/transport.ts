import http from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { CallWatch } from './openai-connection.js';

/** What an aborted call throws, whatever the caller gave as reason; the reason is its `cause`. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  const error = new Error('the call of the model was aborted', { cause: reason });
  error.name = 'AbortError';
  return error;
}

/** Of an error page or JSON; more is not read. */
const ERROR_BODY_BYTES_MAX = 64 * 1024;
/** Idle connections are closed soon: a server with one thread serves nobody else while one is open. */
const IDLE_HTTP_MS = 1_000;
/** Longer, since making one costs round trips; such servers have threads. */
const IDLE_HTTPS_MS = 4_000;
const HEADERS_KEPT = ['content-type', 'retry-after', 'retry-after-ms', 'location', 'x-request-id', 'x-etude-scripted'];

/** The connection failed before an answer came. */
export class TransportError extends Error {
  /** True: an idle connection was used that the server had closed already. The request never reached it. */
  readonly reusedSocket: boolean;

  constructor(cause: Error & { code?: string }, reusedSocket: boolean) {
    super(cause.code ? `${cause.code}: ${cause.message}` : cause.message, { cause });
    this.name = 'TransportError';
    this.reusedSocket = reusedSocket;
  }
}

/**
 * HTTP for the vendor's client over kept-alive connections of `node:http`.
 *
 * Why not the built-in fetch: it costs half a millisecond of processor more per call, gives up after five minutes without
 * headers, and hides whether a connection ended early. Bodies of good answers are read from `bodyOf(response)`.
 */
export class Transport {
  readonly #http: http.Agent;
  readonly #https: https.Agent;
  readonly #bodies = new WeakMap<Response, Readable>();

  constructor(proxyUrl?: string) {
    const proxyEnv = proxyUrl ? { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl } : undefined;
    this.#http = new http.Agent({ keepAlive: true, timeout: IDLE_HTTP_MS, proxyEnv });
    this.#https = new https.Agent({ keepAlive: true, timeout: IDLE_HTTPS_MS, proxyEnv });
  }

  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const message = await this.#send(url, init);
    const status = message.statusCode ?? 0;
    const headers = HEADERS_KEPT.flatMap((name): Array<[string, string]> =>
      message.headers[name] ? [[name, String(message.headers[name])]] : [],
    );
    if (status < 200 || status > 299) return new Response(errorBody(await errorText(message)), { status, headers });
    const response = new Response(null, { status, headers });
    this.#bodies.set(response, decoded(message));
    return response;
  };

  /** The body of an answer with a good status. It has to be read to its end or destroyed. */
  bodyOf(response: Response): Readable {
    const body = this.#bodies.get(response);
    if (!body) throw new Error('this response did not come from this transport');
    return body;
  }

  /** Closes idle connections. Calls under way end first when their signal aborts. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #send(url: URL, { method = 'GET', headers, body, signal }: RequestInit): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      const [module, agent] = url.protocol === 'https:' ? [https, this.#https] : [http, this.#http];
      const request = module.request(url, {
        method,
        agent,
        headers: { ...Object.fromEntries(new Headers(headers)), 'accept-encoding': 'identity' },
      });
      const abort = () => request.destroy(new DOMException('aborted', 'AbortError'));
      const settled = () => signal?.removeEventListener('abort', abort);
      request.once('response', (message) => {
        settled();
        resolve(message);
      });
      // Stays: an error may come again while the socket is torn down.
      request.on('error', (error) => {
        settled();
        reject(error.name === 'AbortError' ? error : new TransportError(error, request.reusedSocket));
      });
      signal?.addEventListener('abort', abort, { once: true });
      if (signal?.aborted) abort();
      else request.end(body);
    });
  }
}

/** Nobody asked for compression, but some servers compress all the same. */
function decoded(message: http.IncomingMessage): Readable {
  const decoder = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate, br: createBrotliDecompress }[
    message.headers['content-encoding'] ?? ''
  ];
  if (!decoder) return message;
  const plain = decoder();
  message.on('error', (error) => plain.destroy(error));
  plain.on('close', () => message.destroy());
  return message.pipe(plain);
}

function errorText(message: http.IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    const body = decoded(message);
    let text = '';
    const done = () => resolve(text);
    body.setEncoding('utf8');
    body.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > ERROR_BODY_BYTES_MAX) message.destroy();
    });
    // What arrived of an error page is enough; its status is known.
    body.on('end', done).on('error', done).on('close', done);
  });
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
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** `enough`: all that is needed came, the rest may follow briefly. `done`: the end came. `full`: more is not wanted. */
export type Progress = 'more' | 'enough' | 'done' | 'full';

/** How long the rest of an answer may take once enough of it came, and the end of a body once its answer is done. */
const REST_MS = 2_000;

/**
 * Feeds a body's text to `push` until that has what it needs or the body ends, well or broken off: what came decides.
 *
 * @throws the signal's AbortError when the watch ends the exchange
 */
export function pumpBody(body: Readable, watch: CallWatch, push: (text: string) => Progress): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let rest: NodeJS.Timeout | undefined;
  const finish = (progress: Progress) => {
    clearTimeout(rest);
    watch.signal.removeEventListener('abort', abort);
    body.off('data', hear).off('end', end).off('close', end);
    if (progress === 'done') drain(body);
    else body.destroy();
  };
  const end = () => {
    finish('full');
    resolve();
  };
  const abort = () => {
    finish('full');
    reject(watch.signal.reason);
  };
  const hear = (text: string) => {
    watch.touch();
    const progress = push(text);
    if (progress === 'more') return;
    if (progress === 'enough') {
      rest ??= setTimeout(end, REST_MS);
      return;
    }
    finish(progress);
    resolve();
  };
  body.setEncoding('utf8');
  // An error closes the body too; the listener stays, since tearing down may raise more of them.
  body.on('error', ignoreBroken).on('data', hear).on('end', end).on('close', end);
  watch.signal.addEventListener('abort', abort, { once: true });
  if (watch.signal.aborted) abort();
  return promise;
}

function ignoreBroken(): void {}

/** Lets the connection be used again: its body must end. One that doesn't is closed. */
function drain(body: Readable): void {
  const timer = setTimeout(() => body.destroy(), REST_MS);
  timer.unref();
  body.once('close', () => clearTimeout(timer));
  body.resume();
}

/** Bounds how many calls run at once; the others wait in order. */
export class InFlight {
  readonly #max: number;
  readonly #waiting: Array<() => void> = [];
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Resolves with the function that gives the place back. @throws AbortError when `signal` aborts while waiting. */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw abortError(signal);
    if (this.#running < this.#max) this.#running++;
    else await this.#turn(signal);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#leave();
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(abortError(signal));
      };
      this.#waiting.push(take);
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** The place goes to the next in line, so the number running stays. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running--;
  }
}
