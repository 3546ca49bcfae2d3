import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import { KubeConfig } from '@kubernetes/client-node';
import { errorDetails, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';

export interface KubeRequest extends KubeTarget {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  readonly contentType?: string;
  /** Timeout of the whole response; of a stream only until it begins. */
  readonly timeoutMs: number;
}

const AGENT_OPTIONS = { keepAlive: true, keepAliveMsecs: 30_000, maxSockets: 64, maxFreeSockets: 16, scheduling: 'lifo' } as const;

/** @param kubeconfigPath undefined: the service account of this pod. @throws Error if a file or its cluster is missing */
export function readConfig(kubeconfigPath: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (kubeconfigPath) {
    config.loadFromFile(kubeconfigPath);
    if (!config.getCurrentCluster())
      throw new Error(`the kubeconfig ${kubeconfigPath} has no cluster for the context ${JSON.stringify(config.getCurrentContext())}`);
  } else config.loadFromCluster();
  return config;
}

/**
 * Requests to the API server, tried once. The vendor's KubeConfig authenticates: service account, certificates, exec plugins, OpenID
 * Connect, proxies.
 *
 * Why not the vendor's own requests and watch: they make a connection per request, and read a watch faster than its events are taken.
 *
 * @throws EtudeError (all methods) SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY; the reason of the signal
 */
export class KubeClient {
  readonly #http = new HttpAgent(AGENT_OPTIONS);
  /** The agent pools connections by certificate and key, so replaced credentials get new connections. */
  readonly #https = new HttpsAgent(AGENT_OPTIONS);

  constructor(private readonly config: KubeConfig) {}

  async json<T>(request: KubeRequest, signal: AbortSignal): Promise<T> {
    const late = AbortSignal.timeout(request.timeoutMs);
    try {
      return JSON.parse(await text(await this.#answer(request, AbortSignal.any([signal, late])))) as T;
    } catch (error) {
      throw failure(request, error, signal, late);
    }
  }

  /** The lines of the body as they come, until the server ends it or `signal` aborts. Reads no faster than its consumer. */
  async *lines(request: KubeRequest, signal: AbortSignal): AsyncGenerator<string> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), request.timeoutMs);
    try {
      const answer = await this.#answer(request, AbortSignal.any([signal, late.signal]));
      clearTimeout(timer);
      let rest = '';
      for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
        const parts = (rest + chunk).split('\n');
        rest = parts.pop() ?? '';
        yield* parts.filter((line) => line.trim() !== '');
      }
      if (rest !== '') throw new Error('the answer ended in the middle of a line');
    } catch (error) {
      throw failure(request, error, signal, late.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends all connections; calls in flight fail. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  async #answer(request: KubeRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const answer = await this.#send(request, signal);
    if ((answer.statusCode ?? 0) >= 300) throw await refusal(request, answer);
    return answer;
  }

  async #send({ path, method, body, contentType = 'application/json' }: KubeRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const cluster = this.config.getCurrentCluster();
    const url = new URL((cluster?.server ?? '').replace(/\/$/, '') + path);
    const secure = url.protocol === 'https:';
    const options: RequestOptions = { headers: {} };
    await this.config.applyToHTTPSOptions(options);
    const content = body === undefined ? null : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const outgoing = (secure ? httpsRequest : httpRequest)(url, {
        ...options,
        method,
        signal,
        ...(cluster?.proxyUrl ? {} : { agent: secure ? this.#https : this.#http }),
        headers: {
          ...(options.headers as Record<string, string>),
          accept: 'application/json',
          ...(content === null ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(content) }),
        },
      });
      outgoing.on('response', resolve);
      outgoing.on('error', reject);
      outgoing.on('socket', (socket) => socket.setKeepAlive(true, 30_000));
      outgoing.end(content ?? undefined);
    });
  }
}

/** @param late aborted when the request took too long */
function failure(request: KubeRequest, error: unknown, signal: AbortSignal, late: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  if (kubeStatus(error) !== null) return error as Error;
  if (late.aborted) return kubeError(request, { code: 0, reason: 'Timeout', message: `no answer within ${request.timeoutMs} ms` });
  const { code: reason = 'Garbled', message } = error as NodeJS.ErrnoException;
  return kubeError(request, { code: 0, reason, message }, error);
}

async function refusal(request: KubeTarget, answer: IncomingMessage): Promise<Error> {
  const body = await text(answer);
  const status = parsedStatus(body);
  const seconds = Number(answer.headers['retry-after'] ?? status?.details?.retryAfterSeconds);
  return kubeError(request, {
    code: answer.statusCode ?? 0,
    reason: status?.reason ?? '',
    message: status?.message ?? (body.trim().slice(0, 200) || `${answer.statusMessage}`),
    details: seconds >= 0 ? { retryAfterSeconds: seconds } : {},
  });
}

/** null if the body is no Status, such as the page of a proxy. The error then shows its text. */
function parsedStatus(body: string): ApiStatus | null {
  const parsed = parsedJson(body) as ApiStatus | null | undefined;
  return parsed?.kind === 'Status' ? parsed : null;
}

export interface KubeTarget {
  readonly method: string;
  readonly path: string;
}

/** The API's Status object, which answers a request or comes as an event of a watch. */
interface ApiStatus {
  readonly kind?: string;
  readonly message?: string;
  /** The API's reason, such as AlreadyExists; without an answer the system's error code, such as ECONNREFUSED. */
  readonly reason?: string;
  /** The HTTP status. 0: there was no answer. */
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

const QUOTA = 'QuotaExceeded';
/** The quota admission lost a compare-and-set, because many pods were created at once. */
export const QUOTA_RACE = 'QuotaConflict';

/** The API's own reason or the system's, except for quotas. */
function reasonOf(status: number, reason: string, message: string): string {
  if (status === 403 && message.includes('exceeded quota')) return QUOTA;
  if (status === 409 && message.includes('on resourcequotas')) return QUOTA_RACE;
  return reason || `Http${status}`;
}

/** SANDBOX_CAPACITY for a full quota, else SANDBOX_UNAVAILABLE; `metadata` has exit, reason and the HTTP status. */
export function kubeError(
  { method, path }: KubeTarget,
  { code: status = 500, reason: told = '', message = 'no message', details }: ApiStatus,
  cause?: unknown,
): EtudeError {
  const reason = reasonOf(status, told, message);
  const answered = status === 0 ? `failed with ${reason}` : `was answered with ${status} ${reason}`;
  const full = reason === QUOTA;
  const seconds = details?.retryAfterSeconds;
  return new EtudeError(
    full ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE',
    `${method} ${path} ${answered}: ${message.trim().replace(/\.?$/, '.')}`,
    {
      metadata: { exit: full ? 'capacity' : 'infra', reason, status: String(status) },
      ...(seconds === undefined ? {} : { retryAfterMs: seconds * 1_000 }),
    },
    { cause },
  );
}

/** The HTTP status in an error of `kubeError`: 0 where no answer came. null for any other error. */
export function kubeStatus(error: unknown): number | null {
  const status = errorDetails(error).metadata?.['status'];
  return status === undefined ? null : Number(status);
}

export function kubeReason(error: unknown): string | null {
  return errorDetails(error).metadata?.['reason'] ?? null;
}
