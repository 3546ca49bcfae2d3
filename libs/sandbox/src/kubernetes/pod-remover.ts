import type { PodApi } from './pod-cluster.js';
import type { PodConnection } from './pod-link.js';
import type { PodRoster, RosterPod } from './pod-roster.js';
import type { KubeLogger } from './pod-view.js';
import type { PoolSettings } from './pool-settings.js';
import { QuietLane } from './quiet-lane.js';

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
