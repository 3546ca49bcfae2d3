import type { V1PodSpec } from '@kubernetes/client-node';
import { KubeClient, type KubeConnectOptions, type KubeRequest, readConfig } from './kube-client.js';
import {
  KUBE_RETRY_POLICY,
  type ApiStatus,
  type KubeRetryPolicy,
  type KubeTarget,
  isTransient,
  kubeError,
  kubeReason,
  kubeStatus,
  statusError,
  withKubeRetries,
  withUnknownOutcome,
} from './kube-error.js';
import { type PodView, type RawPod, podView } from './pod-view.js';

/** A pod to be made. The name is unique by its random part: that is how a create with unknown outcome is found again. */
export interface PodManifest {
  readonly apiVersion: 'v1';
  readonly kind: 'Pod';
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: V1PodSpec;
}

export interface KubeApiLimits {
  /** Of one try. */
  readonly requestTimeoutMs?: number;
  readonly retry?: KubeRetryPolicy;
}

export interface PodPage {
  readonly pods: readonly PodView[];
  /** Of the whole list, the same on each page. */
  readonly resourceVersion: string;
  /** For the next page; null on the last. */
  readonly continue: string | null;
}

interface RawPodList {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly RawPod[];
}

/** The verbs that pods are made and ended with. */
export type PodApi = Pick<KubeApi, 'createPod' | 'getPod' | 'deletePod' | 'patchPod'>;

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly pod: PodView }
  /** Nothing changed up to this version. */
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

const LIMITS = { requestTimeoutMs: 15_000, retry: KUBE_RETRY_POLICY } as const;
/** How much longer than asked for a watch may take to begin. */
const WATCH_BEGIN_MS = 15_000;

/**
 * Pods of one namespace, through the verbs that the controller's Role has: create, get, list, watch, patch, delete.
 *
 * Reads, deletes and patches are repeated while the server is away or sheds load (429, 5xx, no connection), a watch is not.
 * Every call takes an AbortSignal and then throws an AbortError.
 * @throws EtudeError SANDBOX_UNAVAILABLE or SANDBOX_CAPACITY (a full quota) with `metadata` exit, reason (the API's own word, such as
 *   AlreadyExists) and status; see kube-error.ts
 */
export class KubeApi {
  readonly #limits: Required<KubeApiLimits>;

  constructor(
    private readonly client: KubeClient,
    readonly namespace: string,
    limits: KubeApiLimits = {},
  ) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** Reads credentials; talks to no server yet. @throws Error where files are missing or name no such context */
  static connect(options: KubeConnectOptions & { readonly namespace: string }, limits: KubeApiLimits = {}): KubeApi {
    return new KubeApi(new KubeClient(() => readConfig(options)), options.namespace, limits);
  }

  /**
   * Makes the pod, once. After an outcome that nobody knows it looks for the name before it asks again, so a pod with this
   * name and these labels is taken for the one that was to be made.
   *
   * @throws as above; `outcomeUnknown(error)` where the pod may exist all the same. After an AbortError it may, too.
   */
  async createPod(manifest: PodManifest, signal: AbortSignal): Promise<PodView> {
    let maybeMade = false;
    const attempt = async () => {
      try {
        return podView(await this.#json<RawPod>('POST', this.#path(), signal, { body: manifest }));
      } catch (error) {
        const made = maybeMade || isUnknown(error) ? await this.#foundAgain(manifest, signal, error) : null;
        if (made) return made;
        maybeMade ||= isUnknown(error);
        throw maybeMade && isTransient(error) ? withUnknownOutcome(error) : error;
      }
    };
    // Quota admission counts with compare-and-set, and answers 409 Conflict when many pods are made at once.
    return withKubeRetries(attempt, signal, this.#limits.retry, (error) => isTransient(error) || kubeReason(error) === 'Conflict');
  }

  async #foundAgain({ metadata }: PodManifest, signal: AbortSignal, error: unknown): Promise<PodView | null> {
    if (!isUnknown(error) && kubeReason(error) !== 'AlreadyExists') return null;
    const found = await this.getPod(metadata.name, signal).catch((cause: unknown) => {
      throw withUnknownOutcome(cause);
    });
    const ours = found && Object.entries(metadata.labels).every(([key, value]) => found.labels[key] === value);
    return ours ? found : null;
  }

  async getPod(name: string, signal: AbortSignal = NEVER): Promise<PodView | null> {
    const read = async () => podView(await this.#json<RawPod>('GET', this.#path(name), signal));
    return orNull(404, this.#repeated(read, signal));
  }

  /** `deleted`: it was there and ends now; `gone`: no pod of this name has this uid. */
  async deletePod(name: string, options: { uid: string; graceSeconds: number }, signal: AbortSignal = NEVER): Promise<'deleted' | 'gone'> {
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: options.graceSeconds,
      preconditions: { uid: options.uid },
    };
    const remove = async () => {
      await this.client.text(this.#request('DELETE', this.#path(name), { body }), signal);
      return 'deleted' as const;
    };
    // The only precondition is the uid, so a conflict says that another pod has the name by now.
    const done = await orNull(404, orNull(409, this.#repeated(remove, signal)));
    return done ?? 'gone';
  }

  /** Sets labels; null removes one. @returns null where no pod of this name has this uid */
  async patchPod(
    name: string,
    uid: string,
    { labels }: { labels: Readonly<Record<string, string | null>> },
    signal: AbortSignal = NEVER,
  ): Promise<PodView | null> {
    const body = { metadata: { uid, labels } };
    const contentType = 'application/merge-patch+json';
    const patch = async () => podView(await this.#json<RawPod>('PATCH', this.#path(name), signal, { body, contentType }));
    // Patches are merged in the server, which says 409 only after five others came in between.
    const repeated = withKubeRetries(patch, signal, this.#limits.retry, (error) => isTransient(error) || kubeStatus(error) === 409);
    try {
      return await orNull(404, repeated);
    } catch (error) {
      if (kubeStatus(error) === 422 && (error as Error).message.includes('metadata.uid')) return null;
      throw error;
    }
  }

  /** One page. Without `resourceVersion` the newest state; a page behind the first comes from the same moment as the first. */
  async listPods(
    selector: string,
    { limit, continue: from, resourceVersion }: { limit?: number; continue?: string; resourceVersion?: string } = {},
    signal: AbortSignal = NEVER,
  ): Promise<PodPage> {
    const path = this.#path('', { labelSelector: selector, limit, continue: from, resourceVersion });
    const { metadata, items } = await this.#repeated(() => this.#json<RawPodList>('GET', path, signal), signal);
    return {
      pods: (items ?? []).map(podView),
      resourceVersion: metadata?.resourceVersion ?? '',
      continue: metadata?.continue || null,
    };
  }

  /**
   * What changes after `resourceVersion`, in order, until the server ends it, which it does after `timeoutS` or before.
   * Not read, it holds the server back instead of filling memory.
   *
   * @param onOpen hears that the server has answered, which on a quiet namespace is long before the first event
   * @throws as above: status 410 where the version is too old to go on from, 0 where the connection broke
   */
  async *watchPods(
    selector: string,
    { resourceVersion, timeoutS, onOpen }: { resourceVersion: string; timeoutS: number; onOpen?: () => void },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    const path = this.#path('', {
      labelSelector: selector,
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: timeoutS,
    });
    const request: KubeRequest = { method: 'GET', path, timeoutMs: WATCH_BEGIN_MS };
    for await (const line of this.client.lines(request, signal, onOpen)) yield watchEvent(line, request);
  }

  /** Ends all connections; calls in flight fail. */
  close(): void {
    this.client.close();
  }

  #path(name = '', query: Readonly<Record<string, string | number | undefined>> = {}): string {
    const given = Object.entries(query).filter((entry): entry is [string, string | number] => entry[1] !== undefined && entry[1] !== '');
    const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
    const below = name && `/${encodeURIComponent(name)}`;
    return `/api/v1/namespaces/${this.namespace}/pods${below}${search && `?${search}`}`;
  }

  #request(method: KubeRequest['method'], path: string, more: Partial<KubeRequest> = {}): KubeRequest {
    return { method, path, timeoutMs: this.#limits.requestTimeoutMs, ...more };
  }

  #json<T>(method: KubeRequest['method'], path: string, signal: AbortSignal, more: Partial<KubeRequest> = {}): Promise<T> {
    return this.client.json<T>(this.#request(method, path, more), signal);
  }

  #repeated<T>(attempt: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return withKubeRetries(attempt, signal, this.#limits.retry);
  }
}

const NEVER = new AbortController().signal;

/** The server may have done what it was asked. A 429 is sent before anything is done. */
function isUnknown(error: unknown): boolean {
  const status = kubeStatus(error);
  return status === 0 || (status !== null && status >= 500);
}

async function orNull<T>(status: number, outcome: Promise<T>): Promise<T | null> {
  try {
    return await outcome;
  } catch (error) {
    if (kubeStatus(error) === status) return null;
    throw error;
  }
}

function watchEvent(line: string, target: KubeTarget): WatchEvent {
  try {
    const { type, object } = JSON.parse(line) as { type: string; object: RawPod };
    if (type === 'ERROR') throw statusError(target, object as ApiStatus);
    if (type === 'BOOKMARK' && object.metadata?.resourceVersion) return { type, resourceVersion: object.metadata.resourceVersion };
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') return { type, pod: podView(object) };
    throw new TypeError(`no event of a watch is a ${type}`);
  } catch (cause) {
    if (kubeStatus(cause) !== null) throw cause;
    throw kubeError({ ...target, status: 0, reason: 'Garbled', message: `no event of a watch: ${line.slice(0, 100)}`, cause });
  }
}
