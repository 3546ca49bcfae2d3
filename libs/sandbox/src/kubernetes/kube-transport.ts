import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { KubeAccess, KubeCredentials } from './kube-access.js';
import { kubeError, kubeStatus } from './kube-error.js';
import { abortError } from './kube-retry.js';

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  /** For the whole answer; for a stream until it begins. */
  readonly timeoutMs: number;
}

/** A page of 500 pods is about 5 MiB. */
const BODY_MAX_BYTES = 256 * 1024 * 1024;
const ERROR_BODY_MAX_BYTES = 256 * 1024;
const CERTIFICATE_ERRORS = /CERT|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ERR_TLS_/;

interface ApiStatus {
  readonly kind?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

/** One HTTP request to the API server, tried once; every failure is told as `kubeError` says. */
export class KubeTransport {
  constructor(private readonly access: KubeAccess) {}

  /** The body as text. @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY; AbortError */
  async text(request: KubeRequest, signal: AbortSignal): Promise<string> {
    const deadline = new Deadline(request.timeoutMs, signal);
    try {
      return await readText(await this.#answer(request, deadline), BODY_MAX_BYTES);
    } catch (error) {
      throw deadline.explain(request, error);
    } finally {
      deadline.end();
    }
  }

  async json<T>(request: KubeRequest, signal: AbortSignal): Promise<T> {
    const text = await this.text(request, signal);
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw kubeError({ ...request, status: 0, reason: 'Garbled', message: `the answer is no JSON: ${text.slice(0, 100)}`, cause });
    }
  }

  /** The body as it comes, until the server ends it or `signal` aborts. */
  async stream(request: KubeRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const deadline = new Deadline(request.timeoutMs, signal);
    try {
      const answer = await this.#answer(request, deadline);
      answer.once('close', () => deadline.end());
      return answer;
    } catch (error) {
      deadline.end();
      throw deadline.explain(request, error);
    } finally {
      // From here on only `signal` ends it.
      deadline.reached();
    }
  }

  async #answer(request: KubeRequest, deadline: Deadline): Promise<IncomingMessage> {
    const answer = await this.#send(request, deadline, false);
    const believed = answer.statusCode === 401 ? await this.#again(answer, request, deadline) : answer;
    if ((believed.statusCode ?? 0) >= 300) throw await this.#refusal(request, believed);
    return believed;
  }

  /** Tokens are replaced while they are in use. */
  async #again(refused: IncomingMessage, request: KubeRequest, deadline: Deadline): Promise<IncomingMessage> {
    await readText(refused, ERROR_BODY_MAX_BYTES);
    return this.#send(request, deadline, true);
  }

  async #send(request: KubeRequest, { signal }: Deadline, renew: boolean): Promise<IncomingMessage> {
    const { server } = this.access;
    const { agent, headers } = await unlessAborted(this.#credentials(request, renew), signal);
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    const send = server.protocol === 'https:' ? httpsRequest : httpRequest;
    const url = new URL(server.pathname.replace(/\/$/, '') + request.path, server);
    return new Promise((resolve, reject) => {
      const outgoing = send(url, {
        method: request.method,
        agent,
        signal,
        headers: {
          ...headers,
          accept: 'application/json',
          // Compressing costs the server more than a local network saves.
          'accept-encoding': 'identity',
          ...(body === null
            ? {}
            : { 'content-type': request.contentType ?? 'application/json', 'content-length': Buffer.byteLength(body) }),
        },
      });
      outgoing.on('response', resolve);
      outgoing.on('error', reject);
      outgoing.on('socket', (socket) => socket.setKeepAlive(true, 30_000));
      outgoing.end(body ?? undefined);
    });
  }

  /** Reading a file or running a plugin. */
  async #credentials(request: KubeRequest, renew: boolean): Promise<KubeCredentials> {
    try {
      return await this.access.credentials(renew);
    } catch (cause) {
      throw kubeError({ ...request, status: 0, reason: 'Credentials', message: `no credentials: ${(cause as Error).message}`, cause });
    }
  }

  async #refusal(request: KubeRequest, answer: IncomingMessage): Promise<Error> {
    const text = await readText(answer, ERROR_BODY_MAX_BYTES);
    const status = parsedStatus(text);
    const seconds = Number(answer.headers['retry-after'] ?? status?.details?.retryAfterSeconds);
    return kubeError({
      ...request,
      status: answer.statusCode ?? 0,
      reason: status?.reason ?? '',
      message: status?.message ?? (text.trim().slice(0, 200) || `${answer.statusMessage}`),
      ...(Number.isFinite(seconds) && seconds >= 0 ? { retryAfterMs: seconds * 1_000 } : {}),
    });
  }
}

/** A failure inside a watch, which comes as an object and not as a status line. */
export function statusError(request: Pick<KubeRequest, 'method' | 'path'>, object: unknown): Error {
  const { code, reason, message, details } = (object ?? {}) as ApiStatus;
  return kubeError({
    ...request,
    status: code ?? 500,
    reason: reason ?? '',
    message: message ?? 'the server sent an error without saying which',
    ...(details?.retryAfterSeconds ? { retryAfterMs: details.retryAfterSeconds * 1_000 } : {}),
  });
}

/** @param error from a socket @returns the error of ours that says so */
export function connectionError(request: Pick<KubeRequest, 'method' | 'path'>, error: unknown): Error {
  if (kubeStatus(error) !== null) return error as Error;
  const { code = 'ConnectionLost', message } = error as NodeJS.ErrnoException;
  const reason = CERTIFICATE_ERRORS.test(code) ? 'UntrustedCertificate' : code;
  return kubeError({ ...request, status: 0, reason, message, cause: error });
}

function parsedStatus(text: string): ApiStatus | null {
  try {
    const parsed = JSON.parse(text) as ApiStatus;
    return parsed?.kind === 'Status' ? parsed : null;
  } catch {
    // A proxy's page; its text is shown as it is.
    return null;
  }
}

async function readText(answer: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Plugins may hang. @throws an AbortError */
async function unlessAborted<T>(outcome: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(abortError(signal));
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([outcome, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** The caller's abort and the time-out of one try in one signal, told apart afterwards. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #abort = () => this.#controller.abort(this.caller.reason);
  #expired = false;

  constructor(
    private readonly timeoutMs: number,
    private readonly caller: AbortSignal,
  ) {
    this.#timer = setTimeout(() => {
      this.#expired = true;
      this.#controller.abort();
    }, timeoutMs);
    caller.addEventListener('abort', this.#abort, { once: true });
    if (caller.aborted) this.#abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The answer has begun: no time-out any more. */
  reached(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    this.reached();
    this.caller.removeEventListener('abort', this.#abort);
  }

  explain(request: KubeRequest, error: unknown): Error {
    if (this.caller.aborted) return abortError(this.caller);
    if (!this.#expired) return connectionError(request, error);
    return kubeError({ ...request, status: 0, reason: 'Timeout', message: `no answer within ${this.timeoutMs} ms`, cause: error });
  }
}
