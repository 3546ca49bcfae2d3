import type { KubeApi, PodPage, WatchEvent } from './kube-api.js';
import { abortError, backoffMs, kubeReason, kubeStatus, pause } from './kube-error.js';
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

export interface PodWatchOptions {
  /** A label selector, such as `etude.dev/sandbox=pool-a`. */
  readonly selector: string;
  readonly logger?: KubeLogger;
  /** How often everything is listed anew, about; 10 minutes unless given. */
  readonly resyncMs?: number;
  /** Without an event or bookmark for so long the connection is taken for dead; 90 s unless given. Bookmarks come once a minute. */
  readonly silentMs?: number;
  readonly pageSize?: number;
  readonly backoffMinMs?: number;
  readonly backoffMaxMs?: number;
}

export interface PodWatchState {
  /** On the monotonic clock, in ms; null while there is no watch. */
  readonly connectedSince: number | null;
  /** Lists taken, the first included. */
  readonly relists: number;
  readonly resourceVersion: string;
  /** Why there is no watch just now. */
  readonly lastError: string | null;
}

const DEFAULTS = { resyncMs: 600_000, silentMs: 90_000, pageSize: 500, backoffMinMs: 100, backoffMaxMs: 10_000 } as const;
/** Asked of the server, which may end it sooner. */
const WATCH_S = { min: 240, max: 360 } as const;
const RETRY_AFTER_MAX_MS = 60_000;
/** After so many watches in a row without an event, the version itself may be what the server can't serve (its store was restored). */
const FRUITLESS_MAX = 5;
/** A watch that the server ends sooner, without an event, counts as failed. */
const FRUITLESS_MS = 1_000;

/**
 * The pods that match a selector, kept up to date: a list in pages, then a watch from its version on, for as long as it lives.
 *
 * Goes on after everything that can be gone on from: cut, silent and garbled connections, 429, 5xx from the last version seen;
 * 410, and once per `resyncMs`, with a new list, whose differences are told as changes.
 * Why not the vendor's informer: it lists anew on 410 only and stays dead after any other error; no bookmarks, no pages.
 */
export class PodWatch implements PodFeed {
  readonly #options: Required<Omit<PodWatchOptions, 'logger'>> & Pick<PodWatchOptions, 'logger'>;
  readonly #store = new PodStore();
  readonly #listeners = new Set<(change: PodChange) => void>();
  readonly #closing = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  #running: Promise<void> | null = null;
  #state: PodWatchState = { connectedSince: null, relists: 0, resourceVersion: '', lastError: null };
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

  /** By name. */
  get pods(): ReadonlyMap<string, PodView> {
    return this.#store.pods;
  }

  get state(): PodWatchState {
    return this.#state;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves after the first whole list. @throws an AbortError when `signal` aborts or it is closed before */
  async synced(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortError(signal);
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(abortError(signal));
    signal.addEventListener('abort', abort, { once: true });
    await Promise.race([this.#synced.promise, aborted.promise]).finally(() => signal.removeEventListener('abort', abort));
  }

  /** Hears of each change after it is in `pods`, in order. @returns ends it */
  subscribe(listener: (change: PodChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#synced.reject(abortError(this.#closing.signal));
    await this.#running;
    this.#listeners.clear();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (performance.now() >= this.#listDueAt) await this.#list(signal);
        await this.#watch(signal);
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, signal);
      }
    }
    this.#state = { ...this.#state, connectedSince: null };
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { pods, resourceVersion } = await this.#pages(signal);
    this.#listDueAt = performance.now() + this.#options.resyncMs * (0.9 + Math.random() / 5);
    this.#seen(resourceVersion);
    this.#state = { ...this.#state, relists: this.#state.relists + 1 };
    const changes = this.#store.replace(pods);
    this.#synced.resolve();
    for (const change of changes) this.#tell(change);
    this.#options.logger?.debug({ pods: pods.length, changes: changes.length, resourceVersion }, 'listed the sandbox pods');
  }

  /** All pages come from one moment. A server that forgets it half-way answers 410, after which the whole list begins anew. */
  async #pages(signal: AbortSignal): Promise<{ pods: PodView[]; resourceVersion: string }> {
    const { selector, pageSize: limit } = this.#options;
    const pods: PodView[] = [];
    for (let page: PodPage | null = null; ;) {
      page = await this.api.listPods(selector, { limit, ...(page?.continue ? { continue: page.continue } : {}) }, signal);
      pods.push(...page.pods);
      if (page.continue === null) return { pods, resourceVersion: page.resourceVersion };
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const cut = new AbortController();
    const silence = new Error(`the watch was silent for ${this.#options.silentMs} ms`);
    const silent = setTimeout(() => cut.abort(silence), this.#options.silentMs);
    const resync = setTimeout(() => cut.abort(), Math.max(0, Math.ceil(this.#listDueAt - began)));
    const timeoutS = Math.round(WATCH_S.min + Math.random() * (WATCH_S.max - WATCH_S.min));
    let heard = false;
    try {
      const onOpen = () => (this.#state = { ...this.#state, connectedSince: performance.now() });
      const from = { resourceVersion: this.#state.resourceVersion, timeoutS, onOpen };
      for await (const event of this.api.watchPods(this.#options.selector, from, AbortSignal.any([signal, cut.signal]))) {
        heard = true;
        this.#failures = 0;
        this.#take(event);
        silent.refresh();
      }
    } catch (error) {
      if (cut.signal.reason === silence) throw silence;
      if (!cut.signal.aborted) throw error;
    } finally {
      clearTimeout(silent);
      clearTimeout(resync);
      // A refusal that took its time is no watch that worked for a while.
      const { connectedSince } = this.#state;
      if (connectedSince !== null && performance.now() - connectedSince > this.#options.backoffMaxMs) this.#failures = 0;
      this.#state = { ...this.#state, connectedSince: null };
    }
    if (!heard && !cut.signal.aborted && performance.now() - began < FRUITLESS_MS)
      throw new Error('the server ended the watch as soon as it began');
  }

  #take(event: WatchEvent): void {
    this.#seen(event.type === 'BOOKMARK' ? event.resourceVersion : event.pod.resourceVersion);
    if (event.type === 'BOOKMARK') return;
    for (const change of this.#store.apply(event.type, event.pod)) this.#tell(change);
  }

  #seen(resourceVersion: string): void {
    this.#state = { ...this.#state, resourceVersion, lastError: null };
  }

  #tell(change: PodChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#options.logger?.error({ pod: change.pod.name, error: String(error) }, 'a listener to pod changes failed; the watch goes on');
      }
    }
  }

  async #recover(failure: unknown, signal: AbortSignal): Promise<void> {
    this.#failures++;
    if (kubeStatus(failure) === 410 || this.#failures % FRUITLESS_MAX === 0) this.#listDueAt = 0;
    const { backoffMinMs, backoffMaxMs } = this.#options;
    const policy = { attemptsMax: Infinity, backoffMinMs, backoffMaxMs, retryAfterMaxMs: RETRY_AFTER_MAX_MS };
    const waitMs = Math.round(backoffMs(this.#failures, failure, policy));
    const { message } = failure as Error;
    this.#state = { ...this.#state, lastError: message };
    const context = { reason: kubeReason(failure), failures: this.#failures, waitMs, relist: this.#listDueAt === 0 };
    // The first failure of a row is everyday: servers end watches when they restart.
    this.#options.logger?.[this.#failures === 1 ? 'info' : 'warn'](context, `the watch of sandbox pods goes on after: ${message}`);
    try {
      await pause(waitMs, signal);
    } catch {
      // Closed meanwhile, which the loop sees.
    }
  }
}
