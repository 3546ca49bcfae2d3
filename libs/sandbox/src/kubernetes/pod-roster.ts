import { LABELS, type PodPlace } from './pod-identity.js';
import type { PodConnection } from './pod-link.js';
import type { PodView } from './pod-state.js';
import type { PodChange } from './pod-watch.js';

/**
 * `creating`: requested, but the watch has not reported it yet. `starting`: exists, not connected.
 * `free`: connected and unclaimed. `ours`: bound, or being bound, by a claim of this process. `taken`: claimed by another controller.
 * `ending`: finished, deleted, or about to be deleted.
 */
type RosterState = 'creating' | 'starting' | 'free' | 'ours' | 'taken' | 'ending';

export interface RosterPod {
  readonly name: string;
  readonly slot: number;
  uid: string | null;
  view: PodView | null;
  state: RosterState;
  /** null unless the pod is `free`. */
  link: PodConnection | null;
  connecting: boolean;
  /** Whether the watch has reported the pod. */
  seen: boolean;
  /** Whether the pod was made from another version of the template. */
  outdated: boolean;
  /** This controller claims free pods in ascending order of this number. Set when the pod is connected. */
  order: number;
  /** When the pod entered the roster, and when it entered its state (`sinceMs`), on the monotonic clock. */
  readonly addedMs: number;
  sinceMs: number;
}

const finished = (view: PodView) => view.deleting || view.phase === 'Succeeded' || view.phase === 'Failed';

/** The pods of one template by slot. Actions of this process count before the watch reports them, so that no action is repeated. */
export class PodRoster extends Map<number, RosterPod> {
  constructor(private readonly digest: string) {
    super();
  }

  /** Number of pods by state, without outdated ones that are not `ours`. In one pass, since it counts thousands of pods many times a second. */
  counts(): Record<RosterState, number> {
    const counts = { creating: 0, starting: 0, free: 0, ours: 0, taken: 0, ending: 0 };
    for (const pod of this.values()) if (!pod.outdated || pod.state === 'ours') counts[pod.state] += 1;
    return counts;
  }

  get supply(): number {
    const { creating, starting, free } = this.counts();
    return creating + starting + free;
  }

  /** The free pod with the lowest order. Each controller has another order, so two controllers rarely try the same pod. */
  nextFree(): RosterPod | null {
    let best: RosterPod | null = null;
    for (const pod of this.values()) {
      if (pod.state !== 'free' || pod.outdated || !pod.link?.alive) continue;
      if (best === null || pod.order < best.order) best = pod;
    }
    return best;
  }

  move(pod: RosterPod, state: RosterState): void {
    pod.state = state;
    pod.sinceMs = performance.now();
  }

  /** Adds a pod, before its creation or when the watch first reports it. */
  expect(slot: number, name: string): RosterPod {
    const state = { uid: null, view: null, state: 'creating', link: null, connecting: false, seen: false, outdated: false } as const;
    const pod: RosterPod = { name, slot, ...state, order: 0, addedMs: performance.now(), sinceMs: performance.now() };
    this.set(slot, pod);
    return pod;
  }

  /** Applies the API server's answer to a creation. The watch may have reported the pod sooner. */
  created(pod: RosterPod, view: PodView): void {
    if (pod.uid === view.uid || this.get(pod.slot) !== pod) return;
    pod.uid = view.uid;
    pod.view = view;
    this.move(pod, 'starting');
  }

  /** Adds a pod after an attach. The watch may not have reported it yet. */
  adopt({ pod: name, uid }: PodPlace): RosterPod {
    const slot = Number(name.slice(name.lastIndexOf('-') + 1));
    const known = this.get(slot);
    const pod = known?.uid === uid ? known : this.expect(slot, name);
    pod.uid = uid;
    this.move(pod, 'ours');
    return pod;
  }

  /** Drops a pod that was not created or is gone. */
  forget(pod: RosterPod): void {
    if (this.get(pod.slot) === pod) this.delete(pod.slot);
    this.move(pod, 'ending');
  }

  /** Drops requested pods that have had no event of the watch and no connection for `unseenMaxMs`. */
  sweep(unseenMaxMs: number): void {
    for (const pod of this.values())
      if (!pod.seen && pod.link === null && pod.state !== 'ours' && performance.now() - pod.addedMs > unseenMaxMs) this.forget(pod);
  }

  /** Applies a change that the watch reports. @returns the changed pod; undefined if the change is old */
  observe({ pod: view, gone }: PodChange): RosterPod | undefined {
    const slot = Number(view.labels[LABELS.slot]);
    if (!Number.isInteger(slot)) return undefined;
    const known = this.get(slot);
    if (known && !known.seen) {
      // A watch that lags behind the creation may still report a former pod of that name.
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

  /** The pod's state after the watch has reported `view`. This process knows its own claims and removals sooner than the watch. */
  private stateSeen({ state }: RosterPod, view: PodView): RosterState {
    if (state === 'ours' || state === 'ending') return state;
    if (finished(view)) return 'ending';
    if (view.labels[LABELS.state] === 'claimed') return 'taken';
    return state === 'creating' ? 'starting' : state;
  }
}
