import type { PodView } from './pod-view.js';

export interface PodChange {
  readonly pod: PodView;
  readonly before: PodView | null;
  /** It no longer exists, or no longer matches the selector; `pod` is the last that was seen of it. */
  readonly gone: boolean;
}

/** Uids that are remembered as gone, so that a late event doesn't bring them back. */
const GONE_MAX = 4_096;
const DECIMAL = /^\d+$/;

/**
 * Versions are opaque up to Kubernetes 1.34 and comparable decimals from 1.35 on; every server so far writes decimals.
 *
 * Why it may be used at all: events of one watch come in order, so comparing only guards against what is sent twice or late.
 * Where a version is no decimal, all but the same is taken for newer.
 */
function isNewer(version: string, than: string): boolean {
  if (version === than) return false;
  if (!DECIMAL.test(version) || !DECIMAL.test(than)) return true;
  return version.length === than.length ? version > than : version.length > than.length;
}

/** The pods as the server last told of them, by name. No pod in it ever goes back in time, except by a whole new list. */
export class PodStore {
  readonly pods = new Map<string, PodView>();
  /** Version of the end, by uid. */
  readonly #gone = new Map<string, string>();

  /** Takes in one event of a watch. @returns what it changed: nothing where it was known already */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', pod: PodView): PodChange[] {
    const before = this.pods.get(pod.name) ?? null;
    if (type === 'DELETED') return this.#end(pod, before);
    const seen = before?.uid === pod.uid ? before.resourceVersion : this.#gone.get(pod.uid);
    if (seen !== undefined && !isNewer(pod.resourceVersion, seen)) return [];
    this.#gone.delete(pod.uid);
    return this.#put(pod, before);
  }

  /** Takes a consistent list for the truth: what is not in it is gone. */
  replace(pods: readonly PodView[]): PodChange[] {
    const listed = new Set(pods.map((pod) => pod.name));
    const left = [...this.pods.values()].filter((pod) => !listed.has(pod.name));
    this.#gone.clear();
    const ended = left.flatMap((pod) => this.#remove(pod, pod));
    return [...ended, ...pods.flatMap((pod) => this.#put(pod, this.pods.get(pod.name) ?? null))];
  }

  #end(pod: PodView, before: PodView | null): PodChange[] {
    if (before?.uid !== pod.uid) {
      // Another pod has the name by now, or it was gone already; either way it must not come back.
      this.#remember(pod);
      return [];
    }
    if (pod.resourceVersion !== before.resourceVersion && !isNewer(pod.resourceVersion, before.resourceVersion)) return [];
    return this.#remove(pod, before);
  }

  #put(pod: PodView, before: PodView | null): PodChange[] {
    if (before?.uid === pod.uid && before.resourceVersion === pod.resourceVersion) return [];
    const replaced = before && before.uid !== pod.uid ? this.#remove(before, before) : [];
    this.pods.set(pod.name, pod);
    return [...replaced, { pod, before: replaced.length > 0 ? null : before, gone: false }];
  }

  #remove(pod: PodView, before: PodView): PodChange[] {
    this.pods.delete(before.name);
    this.#remember(pod);
    return [{ pod, before, gone: true }];
  }

  #remember({ uid, resourceVersion }: PodView): void {
    this.#gone.delete(uid);
    this.#gone.set(uid, resourceVersion);
    const [oldest] = this.#gone.keys();
    if (this.#gone.size > GONE_MAX && oldest !== undefined) this.#gone.delete(oldest);
  }
}
