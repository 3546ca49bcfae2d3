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

/** Removals at the same time. */
const REMOVALS_MAX = 2;
const DRAIN_POLL_MS = 10;

/** Ends and deletes pods of this process, if possible while no claims come in. */
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

  /** Queues the pod for its removal. Resolves when its process 1 has ended. */
  remove(pod: RosterPod, link: PodConnection | null): Promise<void> {
    this.roster.move(pod, 'ending');
    this.changed();
    return new Promise((ended) => this.waiting.push({ pod, link, addedMs: this.deps.now(), ended }));
  }

  /** Starts the removals that may run now. `quiet`: no claims come in. `pressed`: claims need the room. */
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

  /** Removes all queued pods without waiting for quiet; resolves when they are removed. */
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
    // If this fails, the reaper tries again. The pod itself has ended, or ends with its lease.
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
  /** Whether this process holds a claim of the pod. */
  readonly holds: (uid: string) => boolean;
  /** Templates that this controller knows. */
  readonly templates: ReadonlySet<string>;
}

/** A pod deletes within its grace period and a moment. After this long, its node is taken for dead. */
const DELETING_MAX_MS = 60_000;

/**
 * Deletes pods of any controller that have ended or never started. Several reapers may find the same pod.
 * A claimed pod that runs is left alone: without its controller its lease ends it, and if that fails its deadline.
 */
export class PodReaper {
  /** By uid: the pod's state, and since when it has been in it. */
  private seen = new Map<string, { readonly what: string; readonly sinceMs: number }>();
  private readonly timer: NodeJS.Timeout;
  private running = false;

  constructor(private readonly deps: ReaperDeps) {
    this.timer = setInterval(() => void this.round(), deps.settings.reapEveryMs);
  }

  close(): void {
    clearInterval(this.timer);
  }

  /** One round. The driver runs one at its start, for the pods of former controllers. */
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
      // A node that is gone never confirms a deletion, so the second one has no grace period.
      if (this.deps.now() - sinceMs >= this.patienceMs(pod)) await deletePod(this.deps, pod, pod.deleting ? 0 : 1);
    }
    this.running = false;
  }

  private patienceMs({ deleting, phase, labels }: PodView): number {
    const { settings, templates } = this.deps;
    if (deleting) return DELETING_MAX_MS;
    // The controller of the pod comes first, since it finds out why the pod ended.
    if (phase === 'Succeeded' || phase === 'Failed') return settings.reapEveryMs / 2;
    const orphaned = !templates.has(labels[LABELS.template] ?? '') && labels[LABELS.state] !== 'claimed';
    return phase === 'Pending' || orphaned ? settings.startTimeoutMs : Infinity;
  }
}
