import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import { KubeConfig } from '@kubernetes/client-node';
import { abortError, connectionError, kubeError, kubeStatus, statusError, type ApiStatus, type KubeTarget } from './kube-error.js';

export interface KubeRequest extends KubeTarget {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  readonly contentType?: string;
  /** For the whole answer; for a stream until it begins. */
  readonly timeoutMs: number;
}

export interface KubeConnectOptions {
  /** Absent: the service account of the pod that this process runs in. */
  readonly kubeconfigPath?: string;
  readonly context?: string;
  /** An API server other than the one that the kubelet puts into the environment, with the token and certificate in this folder. */
  readonly server?: string;
  readonly accountPath?: string;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const AGENT_OPTIONS = { keepAlive: true, keepAliveMsecs: 30_000, maxSockets: 64, maxFreeSockets: 16, scheduling: 'lifo' } as const;

/** A server without authentication, such as `kubectl proxy`. */
export function plainConfig(server: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser({ name: 'plain', server, skipTLSVerify: true }, { name: 'plain' });
  return config;
}

/** Reads the credentials' places. @throws Error where a file is missing or names no such context */
export function readConfig({ kubeconfigPath, context, server, accountPath = SERVICE_ACCOUNT }: KubeConnectOptions): KubeConfig {
  const config = new KubeConfig();
  if (kubeconfigPath) {
    config.loadFromFile(kubeconfigPath);
    if (context) config.setCurrentContext(context);
    if (!config.getCurrentCluster())
      throw new Error(`the kubeconfig ${kubeconfigPath} has no cluster for the context ${JSON.stringify(config.getCurrentContext())}`);
    return config;
  }
  if (server) {
    const cluster = { name: 'cluster', server, caFile: `${accountPath}/ca.crt`, skipTLSVerify: server.startsWith('http:') };
    const authProvider = { name: 'tokenFile', config: { tokenFile: `${accountPath}/token` } };
    config.loadFromClusterAndUser(cluster, { name: 'account', authProvider });
  } else config.loadFromCluster();
  return config;
}

/**
 * Requests to the API server, tried once. The vendor's KubeConfig proves who asks: service account, certificates, exec plugins, OpenID
 * Connect, proxies.
 *
 * Why not the vendor's own requests and watch: they make a connection per request, drop the server's Retry-After and lines that can't be
 * parsed, and read a watch faster than its events are taken.
 */
export class KubeClient {
  readonly #http = new HttpAgent(AGENT_OPTIONS);
  /** Pools by certificate and key, so that replaced ones get connections of their own. */
  readonly #https = new HttpsAgent(AGENT_OPTIONS);
  #config: KubeConfig;

  constructor(private readonly load: () => KubeConfig) {
    this.#config = load();
  }

  /** The body as text. @throws EtudeError SANDBOX_UNAVAILABLE, SANDBOX_CAPACITY; AbortError */
  text(request: KubeRequest, signal: AbortSignal): Promise<string> {
    return within(request, signal, async (bounded) => text(await this.#answer(request, bounded)));
  }

  async json<T>(request: KubeRequest, signal: AbortSignal): Promise<T> {
    const body = await this.text(request, signal);
    try {
      return JSON.parse(body) as T;
    } catch (cause) {
      throw kubeError({ ...request, status: 0, reason: 'Garbled', message: `the answer is no JSON: ${body.slice(0, 100)}`, cause });
    }
  }

  /**
   * The lines of the body as they come, until the server ends it or `signal` aborts. Reads only as fast as it is read.
   *
   * @param onOpen hears that the server has answered
   */
  async *lines(request: KubeRequest, signal: AbortSignal, onOpen?: () => void): AsyncGenerator<string> {
    const answer = await within(request, signal, (bounded) => this.#answer(request, bounded, signal));
    onOpen?.();
    try {
      let rest = '';
      for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
        const parts = (rest + chunk).split('\n');
        rest = parts.pop() ?? '';
        yield* parts.filter((line) => line.trim() !== '');
      }
      if (rest !== '') throw new Error('the answer ended in the middle of a line');
    } catch (error) {
      throw signal.aborted ? abortError(signal) : connectionError(request, error);
    } finally {
      answer.destroy();
    }
  }

  /** Ends all connections; calls in flight fail. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  /** @param alive what ends the connection once the answer has begun; `signal` unless given */
  async #answer(request: KubeRequest, signal: AbortSignal, alive = signal): Promise<IncomingMessage> {
    let answer = await this.#send(request, signal);
    if (answer.statusCode === 401) {
      answer.resume();
      // Tokens are replaced while they are in use, and the vendor keeps a plugin's answer until it expires.
      this.#config = this.load();
      answer = await this.#send(request, signal);
    }
    if ((answer.statusCode ?? 0) >= 300) throw await refusal(request, answer);
    if (alive !== signal) alive.addEventListener('abort', () => answer.destroy(alive.reason as Error), { once: true });
    return answer;
  }

  async #send(request: KubeRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const cluster = this.#config.getCurrentCluster();
    const url = new URL((cluster?.server ?? '').replace(/\/$/, '') + request.path);
    const secure = url.protocol === 'https:';
    const options: RequestOptions = { headers: {} };
    await this.#config.applyToHTTPSOptions(options).catch((cause: Error) => {
      throw kubeError({ ...request, status: 0, reason: 'Credentials', message: `no credentials: ${cause.message}`, cause });
    });
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    return new Promise((resolve, reject) => {
      const outgoing = (secure ? httpsRequest : httpRequest)(url, {
        ...options,
        method: request.method,
        signal,
        ...(cluster?.proxyUrl ? {} : { agent: secure ? this.#https : this.#http }),
        headers: {
          ...(options.headers as Record<string, string>),
          accept: 'application/json',
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
}

/** Runs `act` with a signal that also aborts after the request's time-out, and tells both kinds of abort apart. */
async function within<T>(request: KubeRequest, signal: AbortSignal, act: (bounded: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), request.timeoutMs);
  const bounded = AbortSignal.any([signal, late.signal]);
  // A credential plugin that hangs hears of no signal.
  const aborted = new Promise<never>((_, reject) => {
    bounded.addEventListener('abort', () => reject(bounded.reason as Error), { once: true });
  });
  try {
    if (signal.aborted) throw abortError(signal);
    return await Promise.race([act(bounded), aborted]);
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    if (!late.signal.aborted || kubeStatus(error) !== null) throw connectionError(request, error);
    throw kubeError({ ...request, status: 0, reason: 'Timeout', message: `no answer within ${request.timeoutMs} ms`, cause: error });
  } finally {
    clearTimeout(timer);
  }
}

async function refusal(request: KubeTarget, answer: IncomingMessage): Promise<Error> {
  const body = await text(answer);
  const status = parsedStatus(body);
  const seconds = Number(answer.headers['retry-after'] ?? status?.details?.retryAfterSeconds);
  return statusError(request, {
    code: answer.statusCode ?? 0,
    reason: status?.reason ?? '',
    message: status?.message ?? (body.trim().slice(0, 200) || `${answer.statusMessage}`),
    details: Number.isFinite(seconds) && seconds >= 0 ? { retryAfterSeconds: seconds } : {},
  });
}

/** null for the page of a proxy, whose text is shown as it is. */
function parsedStatus(body: string): ApiStatus | null {
  try {
    const parsed = JSON.parse(body) as ApiStatus | null;
    return parsed?.kind === 'Status' ? parsed : null;
  } catch {
    return null;
  }
}
