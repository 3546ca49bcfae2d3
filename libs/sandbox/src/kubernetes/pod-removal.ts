import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS } from './pod-identity.js';
import type { PodConnection } from './pod-link.js';
import type { PodRoster, RosterPod } from './pod-roster.js';
import type { PodView } from './pod-view.js';
import type { PoolDeps } from './pool-settings.js';

interface Removal {
  readonly pod: RosterPod;
  readonly link: PodConnection | null;
  readonly addedMs: number;
  readonly ended: () => void;
}

/** At the same time. */
const REMOVALS_MAX = 2;
const DRAIN_POLL_MS = 10;

/** Ends pods of this process and deletes them, when no claims come in. */
export class PodRemover {
  private readonly waiting: Removal[] = [];
  private running = 0;
  private lastMs = -Infinity;

  constructor(
    private readonly roster: PodRoster,
    private readonly deps: PoolDeps,
    private readonly changed: () => void,
  ) {}

  get idle(): boolean {
    return this.waiting.length === 0 && this.running === 0;
  }

  /** Resolves when its process 1 has ended. */
  remove(pod: RosterPod, link: PodConnection | null): Promise<void> {
    this.roster.move(pod, 'ending');
    this.changed();
    return new Promise((ended) => this.waiting.push({ pod, link, addedMs: this.deps.now(), ended }));
  }

  /** Starts what may run now. `quiet`: there is time. `pressed`: something waits for it. */
  tick(moment: 'busy' | 'quiet' | 'pressed'): void {
    const { now, settings } = this.deps;
    for (let next = this.waiting[0]; next && this.running < REMOVALS_MAX; next = this.waiting[0]) {
      if (moment !== 'pressed' && now() - this.lastMs < settings.spacingMs) return;
      if (moment === 'busy' && now() - next.addedMs < settings.removalMaxMs) return;
      this.waiting.shift();
      this.lastMs = now();
      void this.run(next);
    }
  }

  /** Everything that was to be removed is. */
  async drained(): Promise<void> {
    while (!this.idle) {
      this.tick('pressed');
      await sleep(DRAIN_POLL_MS);
    }
  }

  private async run({ pod, link, ended }: Removal): Promise<void> {
    this.running += 1;
    await link?.destroy();
    ended();
    // The reaper tries again; the pod itself has ended, or ends with its lease.
    if (pod.uid !== null) await deletePod(this.deps, { name: pod.name, uid: pod.uid }, 1);
    this.running -= 1;
    this.changed();
  }
}

async function deletePod({ api, log }: PoolDeps, { name, uid }: { name: string; uid: string }, graceSeconds: number): Promise<void> {
  await api.deletePod(name, { uid, graceSeconds }).catch((error: unknown) => {
    log.warn({ pod: name, err: error }, 'a sandbox pod could not be deleted yet');
  });
}

export interface ReaperDeps extends PoolDeps {
  /** Pods that this process holds a claim of, or ends itself. */
  readonly holds: (uid: string) => boolean;
  /** Templates that this controller knows. */
  readonly templates: ReadonlySet<string>;
}

/** Deleting takes the grace period and a moment; then the node does not answer any more. */
const DELETING_MAX_MS = 60_000;

/**
 * Deletes what has ended or never started, whichever controller it was of. Several reapers may find the same pod. A claimed pod that runs
 * is left alone: its own lease ends it when its controller is gone, its deadline when even that fails.
 */
export class PodReaper {
  /** By uid, since when a pod has been seen as it is. */
  private seen = new Map<string, { readonly what: string; readonly sinceMs: number }>();
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
    const before = this.seen;
    const pods = [...this.deps.feed.pods.values()].filter(({ uid }) => !this.deps.holds(uid));
    this.seen = new Map(
      pods.map((pod) => {
        const what = pod.deleting ? 'deleting' : pod.phase;
        const known = before.get(pod.uid);
        return [pod.uid, known?.what === what ? known : { what, sinceMs: this.deps.now() }];
      }),
    );
    for (const pod of pods) {
      const { sinceMs = Infinity } = this.seen.get(pod.uid) ?? {};
      // A node that is gone never confirms; nothing of the pod is worth waiting for.
      if (this.deps.now() - sinceMs >= this.patienceMs(pod)) await deletePod(this.deps, pod, pod.deleting ? 0 : 1);
    }
    this.running = false;
  }

  private patienceMs({ deleting, phase, labels }: PodView): number {
    const { settings, templates } = this.deps;
    if (deleting) return DELETING_MAX_MS;
    // Its controller has the first word, since it tells why the pod ended.
    if (phase === 'Succeeded' || phase === 'Failed') return settings.reapEveryMs / 2;
    const orphaned = !templates.has(labels[LABELS.template] ?? '') && labels[LABELS.state] !== 'claimed';
    return phase === 'Pending' || orphaned ? settings.startTimeoutMs : Infinity;
  }
}
