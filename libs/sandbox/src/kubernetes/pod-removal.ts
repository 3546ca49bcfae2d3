import type { PodApi } from './kube-api.js';
import { LABELS } from './pod-identity.js';
import type { PodConnection } from './pod-link.js';
import type { PodRoster, RosterPod } from './pod-roster.js';
import type { KubeLogger, PodView } from './pod-view.js';
import type { PodFeed } from './pod-watch.js';
import type { PoolSettings } from './pool-settings.js';
import { QuietLane } from './pool-turns.js';

interface RemoverDeps {
  readonly api: PodApi;
  readonly log: KubeLogger;
  readonly settings: PoolSettings;
  readonly now: () => number;
}

/** At the same time. */
const REMOVALS_MAX = 2;
const DRAIN_POLL_MS = 10;

/** Ends pods of this process and deletes them, when there is time. */
export class PodRemover {
  private readonly lane: QuietLane;

  constructor(
    private readonly roster: PodRoster,
    private readonly deps: RemoverDeps,
    private readonly changed: () => void,
  ) {
    const { settings, now } = deps;
    this.lane = new QuietLane({ atOnce: REMOVALS_MAX, everyMs: settings.spacingMs, waitMaxMs: settings.removalMaxMs, now });
  }

  get idle(): boolean {
    return this.lane.idle;
  }

  /** Starts what may run at such a moment. */
  tick(moment: 'busy' | 'quiet' | 'pressed'): void {
    this.lane.tick(moment);
  }

  /** Resolves when its process 1 has ended. */
  remove(pod: RosterPod, link: PodConnection | null): Promise<void> {
    this.roster.move(pod, 'ending');
    this.changed();
    return new Promise((ended) => {
      void this.lane.add(async () => {
        await link?.destroy();
        ended();
        await this.delete(pod);
      });
    });
  }

  /** Everything that was to be removed is. */
  async drained(): Promise<void> {
    while (!this.idle) {
      this.tick('pressed');
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    }
  }

  private async delete(pod: RosterPod): Promise<void> {
    if (pod.uid === null) return;
    try {
      await this.deps.api.deletePod(pod.name, { uid: pod.uid, graceSeconds: 1 });
    } catch (error) {
      // The reaper tries again; the pod itself has ended, or ends with its lease.
      this.deps.log.warn({ pod: pod.name, err: error }, 'a sandbox pod could not be deleted yet');
    }
  }
}

export interface ReaperDeps extends RemoverDeps {
  readonly feed: PodFeed;
  /** Pods that this process holds a claim of, or ends itself. */
  readonly holds: (uid: string) => boolean;
  /** Templates that this controller knows. */
  readonly templates: ReadonlySet<string>;
}

/** Deleting takes the grace period and a moment; then the node does not answer any more. */
const DELETING_MAX_MS = 60_000;
const AT_ONCE = 4;

/**
 * Deletes what has ended or never started, whichever controller it was of. Several reapers may find the same pod. A claimed pod that runs
 * is left alone: its own lease ends it when its controller is gone, its deadline when even that fails.
 */
export class PodReaper {
  reaped = 0;
  /** Since when a pod has been seen as it is. */
  private readonly seen = new Map<string, { readonly what: string; readonly sinceMs: number }>();
  private readonly timer: NodeJS.Timeout;
  private running = false;

  constructor(private readonly deps: ReaperDeps) {
    this.timer = setInterval(() => void this.round(), deps.settings.reapEveryMs);
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** Also run once at the start, for what former controllers left. */
  async round(): Promise<void> {
    if (this.running) return;
    this.running = true;
    const due = [...this.deps.feed.pods.values()].filter((pod) => this.isDue(pod));
    this.forgetOthers();
    while (due.length > 0) await Promise.all(due.splice(0, AT_ONCE).map((pod) => this.reap(pod)));
    this.running = false;
  }

  private isDue(pod: PodView): boolean {
    const { settings, templates, holds } = this.deps;
    if (holds(pod.uid)) return false;
    const what = pod.deleting ? 'deleting' : pod.phase;
    const known = this.seen.get(pod.uid);
    const since = known?.what === what ? known : { what, sinceMs: performance.now() };
    this.seen.set(pod.uid, since);
    const forMs = performance.now() - since.sinceMs;
    if (pod.deleting) return forMs > DELETING_MAX_MS;
    // Its controller has the first word, since it tells why the pod ended.
    if (pod.phase === 'Succeeded' || pod.phase === 'Failed') return forMs >= settings.reapEveryMs / 2;
    if (pod.phase === 'Pending') return forMs > settings.startTimeoutMs;
    const orphaned = !templates.has(pod.labels[LABELS.template] ?? '') && pod.labels[LABELS.state] !== 'claimed';
    return orphaned && forMs > settings.startTimeoutMs;
  }

  private forgetOthers(): void {
    const there = new Set([...this.deps.feed.pods.values()].map((pod) => pod.uid));
    for (const uid of this.seen.keys()) if (!there.has(uid)) this.seen.delete(uid);
  }

  private async reap(pod: PodView): Promise<void> {
    const { api, log } = this.deps;
    try {
      // A node that is gone never confirms; nothing of the pod is worth waiting for.
      await api.deletePod(pod.name, { uid: pod.uid, graceSeconds: pod.deleting ? 0 : 1 });
      this.reaped += 1;
      log.info({ pod: pod.name, phase: pod.phase, deleting: pod.deleting }, 'deleted a sandbox pod that was left behind');
    } catch (error) {
      log.warn({ pod: pod.name, err: error }, 'a sandbox pod that was left behind could not be deleted yet');
    }
  }
}
