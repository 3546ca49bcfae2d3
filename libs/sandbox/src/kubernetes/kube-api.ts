import type { V1Pod, V1PodSpec } from '@kubernetes/client-node';
import { KubeClient, kubeError, type KubeRequest, kubeStatus, type KubeTarget, readConfig } from './kube-client.js';
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

export interface PodList {
  readonly pods: readonly PodView[];
  /** The version from which a watch can continue. */
  readonly resourceVersion: string;
}

interface RawList {
  readonly metadata?: { readonly resourceVersion?: string };
  readonly items?: readonly V1Pod[];
}

export type PodApi = Pick<KubeApi, 'createPod' | 'getPod' | 'deletePod' | 'labelPod'>;

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly pod: PodView }
  /** Nothing changed up to this version. */
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

/** Timeout of a whole call; of a watch only until it begins. */
const REQUEST_TIMEOUT_MS = 15_000;
const NEVER = new AbortController().signal;

/**
 * Pods of one namespace, through the verbs that the controller's Role has: create, get, list, watch, patch, delete.
 *
 * Each call is sent once. Its caller retries, because the state may have changed meanwhile.
 *
 * @throws EtudeError SANDBOX_UNAVAILABLE or SANDBOX_CAPACITY (a full quota) with `metadata` exit, reason (the API's own word, such as
 *   AlreadyExists) and status; see `kubeError`
 */
export class KubeApi {
  constructor(
    private readonly client: KubeClient,
    readonly namespace: string,
    private readonly timeoutMs = REQUEST_TIMEOUT_MS,
  ) {}

  /** Reads the credentials, without a request. @throws Error where a file is missing or doesn't know the context */
  static connect({ namespace, kubeconfigPath }: ClusterOptions): KubeApi {
    return new KubeApi(new KubeClient(readConfig(kubeconfigPath)), namespace);
  }

  async createPod(manifest: PodManifest, signal: AbortSignal): Promise<PodView> {
    return podView(await this.#call<V1Pod>('POST', this.#path(), signal, { body: manifest }));
  }

  /** null where no pod has this name. */
  async getPod(name: string): Promise<PodView | null> {
    const pod = await unless([404], this.#call<V1Pod>('GET', this.#path(name)));
    return pod && podView(pod);
  }

  /** Does nothing where no pod of this name has this uid. */
  async deletePod(name: string, { uid, graceSeconds }: { uid: string; graceSeconds: number }): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: graceSeconds, preconditions: { uid } };
    await unless([404, 409], this.#call('DELETE', this.#path(name), NEVER, { body }));
  }

  /** @throws also where no pod of this name has this uid */
  async labelPod(name: string, uid: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const contentType = 'application/merge-patch+json';
    await this.#call('PATCH', this.#path(name), NEVER, { body: { metadata: { uid, labels } }, contentType });
  }

  async listPods(selector: string, signal: AbortSignal = NEVER): Promise<PodList> {
    const { metadata, items = [] } = await this.#call<RawList>('GET', this.#path('', { labelSelector: selector }), signal);
    return { pods: items.map(podView), resourceVersion: metadata?.resourceVersion ?? '' };
  }

  /**
   * The changes after `resourceVersion`, in order, until the server ends the watch, after `timeoutS` at the latest.
   * A slow reader slows the server down and fills no memory.
   *
   * @throws with status 410 where the version is too old, 0 where the connection broke
   */
  async *watchPods(
    selector: string,
    { resourceVersion, timeoutS }: { resourceVersion: string; timeoutS: number },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion, timeoutSeconds: String(timeoutS) };
    const path = this.#path('', { labelSelector: selector, ...query });
    const request: KubeRequest = { method: 'GET', path, timeoutMs: this.timeoutMs };
    for await (const line of this.client.lines(request, signal)) yield watchEvent(line, request);
  }

  /** Ends all connections; calls in flight fail. */
  close(): void {
    this.client.close();
  }

  #path(name = '', query: Readonly<Record<string, string>> = {}): string {
    const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
    return `/api/v1/namespaces/${this.namespace}/pods${name && `/${encodeURIComponent(name)}`}${given.size > 0 ? `?${given.toString()}` : ''}`;
  }

  #call<T>(method: KubeRequest['method'], path: string, signal = NEVER, more: Partial<KubeRequest> = {}): Promise<T> {
    return this.client.json<T>({ method, path, timeoutMs: this.timeoutMs, ...more }, signal);
  }
}

/** The outcome; null where the server answers with one of `statuses`. */
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
