import { LABELS, type PodPlace } from './pod-identity.js';
import type { PodConnection } from './pod-link.js';
import type { PodView } from './pod-view.js';
import type { PodChange } from './pod-watch.js';

/**
 * `creating`: asked for, or said by the API server to exist, and not seen yet. `starting`: there, not connected.
 * `free`: connected and nobody's. `ours`: bound, or being bound, by a claim of this process. `taken`: another controller's.
 * `ending`: deleted, finished, or about to be.
 */
export type RosterState = 'creating' | 'starting' | 'free' | 'ours' | 'taken' | 'ending';

export interface RosterPod {
  readonly name: string;
  readonly slot: number;
  uid: string | null;
  view: PodView | null;
  state: RosterState;
  /** Only while `free`. */
  link: PodConnection | null;
  /** Whether somebody tries to connect to it. */
  connecting: boolean;
  /** Whether the watch has shown it. */
  seen: boolean;
  /** Made from another version of the template. */
  outdated: boolean;
  /** Its place in the order in which this controller claims; set when it is connected. */
  order: number;
  /** When it entered the roster, and its state. */
  readonly addedMs: number;
  sinceMs: number;
}

const finished = (view: PodView) => view.deleting || view.phase === 'Succeeded' || view.phase === 'Failed';

/**
 * The pods of one template: what this process did, together with what the watch has told so far. What was done counts at once, so that
 * a slow watch never makes it be done twice.
 */
export class PodRoster {
  private readonly bySlot = new Map<number, RosterPod>();

  constructor(
    private readonly digest: string,
    private readonly now: () => number,
  ) {}

  get size(): number {
    return this.bySlot.size;
  }

  [Symbol.iterator](): Iterator<RosterPod> {
    return this.bySlot.values();
  }

  at(slot: number): RosterPod | undefined {
    return this.bySlot.get(slot);
  }

  /** Of the current template, claimed ones of any, by state. One pass: this is asked for thousands of pods many times a second. */
  counts(): Record<RosterState, number> {
    const counts = { creating: 0, starting: 0, free: 0, ours: 0, taken: 0, ending: 0 };
    for (const pod of this) if (!pod.outdated || pod.state === 'ours') counts[pod.state] += 1;
    return counts;
  }

  /** Pods that are free or may become so. */
  get supply(): number {
    const { creating, starting, free } = this.counts();
    return creating + starting + free;
  }

  /** The free pod that comes first in this controller's own order, so that controllers rarely meet at one. */
  nextFree(): RosterPod | null {
    let best: RosterPod | null = null;
    for (const pod of this) {
      if (pod.state !== 'free' || pod.outdated || !pod.link?.alive) continue;
      if (best === null || pod.order < best.order) best = pod;
    }
    return best;
  }

  move(pod: RosterPod, state: RosterState): void {
    pod.state = state;
    pod.sinceMs = this.now();
  }

  /** A pod is about to be asked for, or the API server says that its name is taken. */
  expect(slot: number, name: string): RosterPod {
    const state = { uid: null, view: null, state: 'creating', link: null, connecting: false, seen: false, outdated: false } as const;
    const pod: RosterPod = { name, slot, ...state, order: 0, addedMs: this.now(), sinceMs: this.now() };
    this.bySlot.set(slot, pod);
    return pod;
  }

  /** The API server's answer to a creation, which may come later than the watch's word of it. */
  created(pod: RosterPod, view: PodView): void {
    if (pod.uid === view.uid || this.bySlot.get(pod.slot) !== pod) return;
    pod.uid = view.uid;
    pod.view = view;
    this.move(pod, 'starting');
  }

  /** A pod that this process has attached to; the watch may not have shown it yet. */
  adopt({ pod: name, uid }: PodPlace): RosterPod {
    const slot = Number(name.slice(name.lastIndexOf('-') + 1));
    const known = this.bySlot.get(slot);
    const pod = known?.uid === uid ? known : this.expect(slot, name);
    pod.uid = uid;
    this.move(pod, 'ours');
    return pod;
  }

  /** It was not created after all. */
  forget(pod: RosterPod): void {
    if (this.bySlot.get(pod.slot) === pod) this.bySlot.delete(pod.slot);
    this.move(pod, 'ending');
  }

  /** Forgets pods that were asked for, and that neither the watch nor a connection has shown since. */
  sweep(unseenMaxMs: number): void {
    for (const pod of this)
      if (!pod.seen && pod.link === null && pod.state !== 'ours' && this.now() - pod.addedMs > unseenMaxMs) this.forget(pod);
  }

  /** @returns the pod that changed; undefined where it is no news */
  observe({ pod: view, gone }: PodChange): RosterPod | undefined {
    const slot = Number(view.labels[LABELS.slot]);
    if (!Number.isInteger(slot)) return undefined;
    const known = this.bySlot.get(slot);
    if (known && !known.seen) {
      // Word of an older pod of that name, from a watch that lags behind what was created since.
      if (known.uid === null ? gone || finished(view) : known.uid !== view.uid) return undefined;
    }
    if (gone) {
      if (known?.uid !== view.uid) return undefined;
      this.forget(known);
      return known;
    }
    const pod = known && (known.uid === null || known.uid === view.uid) ? known : this.expect(slot, view.name);
    pod.uid = view.uid;
    pod.view = view;
    pod.seen = true;
    pod.outdated = view.labels[LABELS.digest] !== this.digest;
    const state = this.stateSeen(pod, view);
    if (state !== pod.state) this.move(pod, state);
    return pod;
  }

  /** What this process knows of its own claims comes first. */
  private stateSeen({ state }: RosterPod, view: PodView): RosterState {
    if (state === 'ours' || state === 'ending') return state;
    if (finished(view)) return 'ending';
    if (view.labels[LABELS.state] === 'claimed') return 'taken';
    return state === 'creating' ? 'starting' : state;
  }
}
