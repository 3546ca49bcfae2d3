import { setTimeout as sleep } from 'node:timers/promises';
import { errorDetails } from '@etude/contracts/errors';
import type { KubeApi, WatchEvent } from './kube-api.js';
import { kubeReason, kubeStatus } from './kube-error.js';
import type { KubeLogger, PodView } from './pod-view.js';

export interface PodChange {
  readonly pod: PodView;
  /** It no longer exists, or no longer matches the selector; `pod` is the last that was seen of it. */
  readonly gone: boolean;
}

/** The pods by name, and each change of them. */
export interface PodFeed {
  readonly pods: ReadonlyMap<string, PodView>;
  subscribe(listener: (change: PodChange) => void): () => void;
}

/** The pods as the server last told of them, by name. */
export class PodStore {
  readonly pods = new Map<string, PodView>();

  /** Takes in one event of a watch. @returns the changes: none where it was known already */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: PodView): PodChange[] {
    if (type !== 'DELETED') return this.#put(pod);
    return this.pods.get(pod.name)?.uid === pod.uid ? this.#remove(pod) : [];
  }

  /** Takes a consistent list for the truth: a pod that is not in it is gone. */
  replace(pods: readonly PodView[]): PodChange[] {
    const listed = new Set(pods.map((pod) => pod.name));
    const left = [...this.pods.values()].filter((pod) => !listed.has(pod.name));
    return [...left.flatMap((pod) => this.#remove(pod)), ...pods.flatMap((pod) => this.#put(pod))];
  }

  #put(pod: PodView): PodChange[] {
    const before = this.pods.get(pod.name);
    if (before?.uid === pod.uid && before.resourceVersion === pod.resourceVersion) return [];
    const replaced = before && before.uid !== pod.uid ? this.#remove(before) : [];
    this.pods.set(pod.name, pod);
    return [...replaced, { pod, gone: false }];
  }

  #remove(pod: PodView): PodChange[] {
    this.pods.delete(pod.name);
    return [{ pod, gone: true }];
  }
}

const DEFAULTS = {
  /** How often everything is listed anew, about. */
  resyncMs: 600_000,
  /** Without an event or bookmark for so long the connection is taken for dead. Bookmarks come once a minute. */
  silentMs: 90_000,
  pageSize: 500,
  backoffMinMs: 100,
  backoffMaxMs: 10_000,
};

export interface PodWatchOptions extends Partial<typeof DEFAULTS> {
  /** A label selector, such as `etude.dev/pool=etude`. */
  readonly selector: string;
  readonly logger?: KubeLogger;
}

/** Asked of the server, which may end it sooner. */
const WATCH_S = { min: 240, max: 360 };
const RETRY_AFTER_MAX_MS = 60_000;
/** After so many failures in a row, the version itself may be what the server can't serve (its store was restored). */
const FAILURES_MAX = 5;

/**
 * The pods that match a selector, kept up to date: a list in pages, then a watch from its version on, for as long as it lives.
 *
 * Goes on after everything that can be gone on from: cut, silent and garbled connections, 429, 5xx from the last version seen;
 * 410, and once per `resyncMs`, with a new list, whose differences are told as changes.
 * Why not the vendor's informer: it lists anew on 410 only and stays dead after any other error; no bookmarks, no pages.
 */
export class PodWatch implements PodFeed {
  /** `relists`: lists taken, the first included. `lastError`: why there is no watch just now. */
  readonly state = { relists: 0, resourceVersion: '', lastError: null as string | null };
  readonly #options: typeof DEFAULTS & PodWatchOptions;
  readonly #store = new PodStore();
  readonly #listeners = new Set<(change: PodChange) => void>();
  readonly #closing = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  #running: Promise<void> | null = null;
  #listDueAt = 0;
  /** Failed watches and lists in a row. */
  #failures = 0;

  constructor(
    private readonly api: KubeApi,
    options: PodWatchOptions,
  ) {
    this.#options = { ...DEFAULTS, ...options };
    // Nobody has to wait for it.
    this.#synced.promise.catch(() => undefined);
  }

  get pods(): ReadonlyMap<string, PodView> {
    return this.#store.pods;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves after the first whole list. @throws the reason of `signal`; an AbortError when it is closed before */
  async synced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    await Promise.race([this.#synced.promise, aborted]).finally(() => signal.removeEventListener('abort', abort));
  }

  /** Hears of each change after it is in `pods`, in order. @returns ends it */
  subscribe(listener: (change: PodChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#synced.reject(this.#closing.signal.reason);
    await this.#running;
    this.#listeners.clear();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (performance.now() >= this.#listDueAt) await this.#list(signal);
        await this.#watch(signal);
        this.#failures = 0;
        // A server that ends every watch at once is asked no more often.
        await sleep(this.#options.backoffMinMs, undefined, { signal });
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, signal);
      }
    }
  }

  /** All pages come from one moment. A server that forgets it half-way answers 410, after which the whole list begins anew. */
  async #list(signal: AbortSignal): Promise<void> {
    const { selector, pageSize: limit, resyncMs, logger } = this.#options;
    const pods: PodView[] = [];
    let page = await this.api.listPods(selector, { limit }, signal);
    pods.push(...page.pods);
    while (page.continue !== '') {
      page = await this.api.listPods(selector, { limit, continue: page.continue }, signal);
      pods.push(...page.pods);
    }
    this.#listDueAt = performance.now() + resyncMs * (0.9 + Math.random() / 5);
    this.#seen(page.resourceVersion);
    this.state.relists += 1;
    const changes = this.#store.replace(pods);
    this.#synced.resolve();
    for (const change of changes) this.#tell(change);
    logger?.debug({ pods: pods.length, changes: changes.length }, 'listed the sandbox pods');
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { selector, silentMs } = this.#options;
    const cut = new AbortController();
    const silence = new Error(`the watch was silent for ${silentMs} ms`);
    const silent = setTimeout(() => cut.abort(silence), silentMs);
    const resync = setTimeout(() => cut.abort(), Math.max(0, Math.ceil(this.#listDueAt - performance.now())));
    const timeoutS = Math.round(WATCH_S.min + Math.random() * (WATCH_S.max - WATCH_S.min));
    try {
      const from = { resourceVersion: this.state.resourceVersion, timeoutS };
      for await (const event of this.api.watchPods(selector, from, AbortSignal.any([signal, cut.signal]))) {
        this.#failures = 0;
        this.#take(event);
        silent.refresh();
      }
    } catch (error) {
      if (!cut.signal.aborted || error === silence) throw error;
    } finally {
      clearTimeout(silent);
      clearTimeout(resync);
    }
  }

  #take(event: WatchEvent): void {
    this.#seen(event.type === 'BOOKMARK' ? event.resourceVersion : event.pod.resourceVersion);
    if (event.type === 'BOOKMARK') return;
    for (const change of this.#store.apply(event.type, event.pod)) this.#tell(change);
  }

  #seen(resourceVersion: string): void {
    this.state.resourceVersion = resourceVersion;
    this.state.lastError = null;
  }

  #tell(change: PodChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  async #recover(failure: unknown, signal: AbortSignal): Promise<void> {
    this.#failures++;
    if (kubeStatus(failure) === 410 || this.#failures % FAILURES_MAX === 0) this.#listDueAt = 0;
    const waitMs = this.#waitMs(failure);
    const { message } = failure as Error;
    this.state.lastError = message;
    const context = { reason: kubeReason(failure), failures: this.#failures, waitMs, relist: this.#listDueAt === 0 };
    // The first failure of a row is everyday: servers end watches when they restart.
    this.#options.logger?.[this.#failures === 1 ? 'info' : 'warn'](context, `the watch of sandbox pods goes on after: ${message}`);
    await sleep(waitMs, undefined, { signal }).catch(() => undefined);
  }

  #waitMs(failure: unknown): number {
    const { backoffMinMs, backoffMaxMs } = this.#options;
    const backoff = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(this.#failures - 1, 30)) * (0.5 + Math.random() / 2);
    const asked = Math.min(errorDetails(failure).retryAfterMs ?? 0, RETRY_AFTER_MAX_MS);
    // Jitter on top of the wait that was asked for, or all clients that were turned away come back at once.
    return Math.round(asked > 0 ? asked + Math.min(backoff, asked) / 2 : backoff);
  }
}
