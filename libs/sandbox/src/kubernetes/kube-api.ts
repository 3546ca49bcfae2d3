import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import { KubeConfig, type V1Pod, type V1PodList, type V1PodSpec } from '@kubernetes/client-node';
import { kubeError, kubeStatus, type KubeTarget, refusal } from './kube-errors.js';
import { type PodView, podView } from './pod-state.js';

export interface ClusterOptions {
  readonly namespace: string;
  /** Absent: the service account of the pod that this process runs in. */
  readonly kubeconfigPath?: string | undefined;
}

export interface PodManifest {
  readonly apiVersion: 'v1';
  readonly kind: 'Pod';
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: V1PodSpec;
}

export type PodApi = Pick<KubeApi, 'createPod' | 'getPod' | 'deletePod' | 'labelPod' | 'close'>;

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly pod: PodView }
  /** Nothing changed up to this version. */
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

interface KubeRequest extends KubeTarget {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly body?: unknown;
  readonly contentType?: string;
}

const REQUEST_TIMEOUT_MS = 15_000;
const NEVER = new AbortController().signal;
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
 * Pods of one namespace, through the verbs that the controller's Role has: create, get, list, watch, patch, delete.
 *
 * Each call is sent once. Its caller decides about a retry, because the state may have changed meanwhile. The vendor's KubeConfig
 * authenticates: service account, certificates, exec plugins, OpenID Connect, proxies.
 *
 * Why not the vendor's requests and watch: they open a connection per request, and read a watch faster than its events are consumed.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE or SANDBOX_CAPACITY (a full quota) with `metadata` exit, reason (the API's own word, such as
 *   AlreadyExists) and status, see `kubeError`; the reason of the signal
 */
export class KubeApi {
  readonly #http = new HttpAgent(AGENT_OPTIONS);
  /** The agent pools connections by certificate and key, so replaced credentials get new connections. */
  readonly #https = new HttpsAgent(AGENT_OPTIONS);

  /** @param timeoutMs timeout of a whole call; for a watch, only until the answer begins */
  constructor(
    private readonly config: KubeConfig,
    readonly namespace: string,
    private readonly timeoutMs = REQUEST_TIMEOUT_MS,
  ) {}

  /** Reads the credentials, without a request. @throws Error where a file is missing or doesn't know the context */
  static connect({ namespace, kubeconfigPath }: ClusterOptions): KubeApi {
    return new KubeApi(readConfig(kubeconfigPath), namespace);
  }

  async createPod(manifest: PodManifest, signal: AbortSignal): Promise<PodView> {
    return podView(await this.#json<V1Pod>({ method: 'POST', path: this.#path(), body: manifest }, signal));
  }

  /** null if no pod has this name. */
  async getPod(name: string): Promise<PodView | null> {
    const pod = await unless([404], this.#json<V1Pod>({ method: 'GET', path: this.#path(name) }));
    return pod && podView(pod);
  }

  /** Does nothing if no pod of this name has this uid. */
  async deletePod(name: string, { uid, graceSeconds }: { uid: string; graceSeconds: number }): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: graceSeconds, preconditions: { uid } };
    await unless([404, 409], this.#json({ method: 'DELETE', path: this.#path(name), body }));
  }

  /** @throws also if no pod of this name has this uid */
  async labelPod(name: string, uid: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const contentType = 'application/merge-patch+json';
    await this.#json({ method: 'PATCH', path: this.#path(name), body: { metadata: { uid, labels } }, contentType });
  }

  /** The pods, and the version from which a watch can continue. */
  async listPods(selector: string, signal: AbortSignal = NEVER) {
    const path = this.#path('', { labelSelector: selector });
    const { metadata, items = [] } = await this.#json<Partial<V1PodList>>({ method: 'GET', path }, signal);
    return { pods: items.map(podView), resourceVersion: metadata?.resourceVersion ?? '' };
  }

  /**
   * The changes after `resourceVersion`, in order, until the server ends the watch, after `timeoutS` at the latest.
   * A slow reader slows the server down and fills no memory.
   *
   * @throws with status 410 if the version is too old, and with 0 if the connection broke
   */
  async *watchPods(
    selector: string,
    { resourceVersion, timeoutS }: { resourceVersion: string; timeoutS: number },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion, timeoutSeconds: String(timeoutS) };
    const request: KubeRequest = { method: 'GET', path: this.#path('', { labelSelector: selector, ...query }) };
    for await (const line of this.#lines(request, signal)) yield watchEvent(line, request);
  }

  /** Ends all connections; calls in flight fail. */
  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #path(name = '', query: Readonly<Record<string, string>> = {}): string {
    const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
    return `/api/v1/namespaces/${this.namespace}/pods${name && `/${encodeURIComponent(name)}`}${given.size > 0 ? `?${given.toString()}` : ''}`;
  }

  async #json<T>(request: KubeRequest, signal = NEVER): Promise<T> {
    const late = AbortSignal.timeout(this.timeoutMs);
    try {
      return JSON.parse(await text(await this.#answer(request, AbortSignal.any([signal, late])))) as T;
    } catch (error) {
      throw this.#failure(request, error, signal, late);
    }
  }

  /** The lines of the body as they come, until the server ends it or `signal` aborts. Reads no faster than its consumer. */
  async *#lines(request: KubeRequest, signal: AbortSignal): AsyncGenerator<string> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.timeoutMs);
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
      throw this.#failure(request, error, signal, late.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param late aborted when the request took too long */
  #failure(request: KubeTarget, error: unknown, signal: AbortSignal, late: AbortSignal): Error {
    if (signal.aborted) return signal.reason as Error;
    if (kubeStatus(error) !== null) return error as Error;
    if (late.aborted) return kubeError(request, { code: 0, reason: 'Timeout', message: `no answer within ${this.timeoutMs} ms` });
    const { code: reason = 'Garbled', message } = error as NodeJS.ErrnoException;
    return kubeError(request, { code: 0, reason, message }, error);
  }

  async #answer({ body, contentType = 'application/json', ...target }: KubeRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const cluster = this.config.getCurrentCluster();
    const url = new URL((cluster?.server ?? '').replace(/\/$/, '') + target.path);
    const secure = url.protocol === 'https:';
    const options: RequestOptions = { headers: {} };
    await this.config.applyToHTTPSOptions(options);
    const content = body === undefined ? null : JSON.stringify(body);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = (secure ? httpsRequest : httpRequest)(url, {
        ...options,
        method: target.method,
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
    if ((answer.statusCode ?? 0) >= 300) throw await refusal(target, answer);
    return answer;
  }
}

async function unless<T>(statuses: readonly number[], outcome: Promise<T>): Promise<T | null> {
  try {
    return await outcome;
  } catch (error) {
    if (statuses.includes(kubeStatus(error) ?? -1)) return null;
    throw error;
  }
}

function watchEvent(line: string, target: KubeTarget): WatchEvent {
  try {
    const { type, object } = JSON.parse(line) as { type: string; object: V1Pod };
    if (type === 'ERROR') throw kubeError(target, object);
    if (type === 'BOOKMARK' && object.metadata?.resourceVersion) return { type, resourceVersion: object.metadata.resourceVersion };
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') return { type, pod: podView(object) };
    throw new TypeError(`a watch has no events of type ${type}`);
  } catch (cause) {
    if (kubeStatus(cause) !== null) throw cause;
    const message = `the API server sent a malformed watch event: ${line.slice(0, 100)}`;
    throw kubeError(target, { code: 0, reason: 'Garbled', message }, cause);
  }
}
