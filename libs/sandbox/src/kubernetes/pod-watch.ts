import { setTimeout as sleep } from 'node:timers/promises';
import { errorDetails, unlessAborted } from '@etude/contracts/errors';
import type { KubeApi, WatchEvent } from './kube-api.js';
import { kubeReason, kubeStatus } from './kube-errors.js';
import type { KubeLogger, PodView } from './pod-state.js';

export interface PodChange {
  readonly pod: PodView;
  /** Whether the pod no longer exists or no longer matches the selector; `pod` is then its last known state. */
  readonly gone: boolean;
}

/** The members of a watch that pools use and tests simulate. */
export type PodFeed = Pick<PodWatch, 'pods' | 'lastError' | 'subscribe' | 'close'>;

/** The pods by name, in the state that the server last sent, and the listeners to their changes. */
export class PodStore {
  readonly pods = new Map<string, PodView>();
  readonly #listeners = new Set<(change: PodChange) => void>();

  /** Calls `listener` with each change, in order, after `pods` was updated. @returns a function that unsubscribes */
  subscribe(listener: (change: PodChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Applies one event of a watch. A known event changes nothing. */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: PodView): void {
    if (type !== 'DELETED') this.#put(pod);
    else if (this.pods.get(pod.name)?.uid === pod.uid) this.#remove(pod);
  }

  /** Applies a complete list. Pods that are not in it are gone. */
  replace(pods: readonly PodView[]): void {
    const listed = new Set(pods.map((pod) => pod.name));
    for (const pod of this.pods.values()) if (!listed.has(pod.name)) this.#remove(pod);
    for (const pod of pods) this.#put(pod);
  }

  #put(pod: PodView): void {
    const before = this.pods.get(pod.name);
    if (before?.uid === pod.uid && before.resourceVersion === pod.resourceVersion) return;
    if (before && before.uid !== pod.uid) this.#remove(before);
    this.pods.set(pod.name, pod);
    this.#tell({ pod, gone: false });
  }

  #remove(pod: PodView): void {
    this.pods.delete(pod.name);
    this.#tell({ pod, gone: true });
  }

  #tell(change: PodChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

const DEFAULTS = {
  /** A watch without an event or bookmark for this long counts as broken. Bookmarks come once a minute. */
  silentMs: 90_000,
  backoffMinMs: 100,
  backoffMaxMs: 10_000,
};

export interface PodWatchOptions extends Partial<typeof DEFAULTS> {
  /** A label selector, such as `etude.dev/pool=etude`. */
  readonly selector: string;
  readonly logger?: KubeLogger;
}

/** Range of the duration that is requested for a watch, in seconds. The server may end it sooner. */
const WATCH_S = { min: 240, max: 360 };
const RETRY_AFTER_MAX_MS = 60_000;
/** After this many failures in a row all pods are listed again, since a server that was restored from a backup may not know the version. */
const FAILURES_MAX = 5;

/**
 * Keeps the pods that match a selector up to date: lists them, then watches from the version of the list on.
 *
 * After cut, silent and garbled connections, 429 and 5xx it watches again from the last version seen.
 * After 410, and after several failures in a row, it lists again and reports the differences as changes.
 * Why not the vendor's informer: it ends at any error except 410 and has no bookmarks.
 */
export class PodWatch extends PodStore {
  resourceVersion = '';
  /** The error that ended the last watch; null while a watch runs. */
  lastError: string | null = null;
  readonly #options: typeof DEFAULTS & PodWatchOptions;
  readonly #closing = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #listDue = true;
  /** Failed watches and lists in a row. */
  #failures = 0;

  constructor(
    private readonly api: KubeApi,
    options: PodWatchOptions,
  ) {
    super();
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Call it once. Resolves after the first complete list. @throws the reason of `signal`; an AbortError if the watch is closed earlier */
  start(signal: AbortSignal): Promise<void> {
    this.#running = this.#run();
    return unlessAborted(this.#synced.promise, signal);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#synced.reject(this.#closing.signal.reason);
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (this.#listDue) await this.#list(signal);
        await this.#watch(signal);
        this.#failures = 0;
        // Bounds the rate of requests to a server that ends every watch at once.
        await sleep(this.#options.backoffMinMs, undefined, { signal });
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { pods, resourceVersion } = await this.api.listPods(this.#options.selector, signal);
    this.#listDue = false;
    this.#seen(resourceVersion);
    this.replace(pods);
    this.#synced.resolve();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { selector, silentMs } = this.#options;
    const cut = new AbortController();
    const silent = setTimeout(() => cut.abort(new Error(`the watch was silent for ${silentMs} ms`)), silentMs);
    const timeoutS = Math.round(WATCH_S.min + Math.random() * (WATCH_S.max - WATCH_S.min));
    try {
      const from = { resourceVersion: this.resourceVersion, timeoutS };
      for await (const event of this.api.watchPods(selector, from, AbortSignal.any([signal, cut.signal]))) {
        this.#failures = 0;
        this.#take(event);
        silent.refresh();
      }
    } finally {
      clearTimeout(silent);
    }
  }

  #take(event: WatchEvent): void {
    this.#seen(event.type === 'BOOKMARK' ? event.resourceVersion : event.pod.resourceVersion);
    if (event.type !== 'BOOKMARK') this.apply(event.type, event.pod);
  }

  #seen(resourceVersion: string): void {
    this.resourceVersion = resourceVersion;
    this.lastError = null;
  }

  async #recover(failure: unknown, signal: AbortSignal): Promise<void> {
    this.#failures++;
    if (kubeStatus(failure) === 410 || this.#failures % FAILURES_MAX === 0) this.#listDue = true;
    const waitMs = this.#waitMs(failure);
    const { message } = failure as Error;
    this.lastError = message;
    const context = { reason: kubeReason(failure), failures: this.#failures, waitMs, relist: this.#listDue };
    // A single failure is normal: servers end watches when they restart.
    this.#options.logger?.[this.#failures === 1 ? 'info' : 'warn'](context, `the watch of sandbox pods failed and is repeated: ${message}`);
    await sleep(waitMs, undefined, { signal }).catch(() => undefined);
  }

  #waitMs(failure: unknown): number {
    const { backoffMinMs, backoffMaxMs } = this.#options;
    const backoff = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(this.#failures - 1, 30)) * (0.5 + Math.random() / 2);
    return Math.round(Math.min(RETRY_AFTER_MAX_MS, (errorDetails(failure).retryAfterMs ?? 0) + backoff));
  }
}
