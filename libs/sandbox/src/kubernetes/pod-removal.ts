import { LABELS } from './pod-identity.js';
import type { PodView } from './pod-state.js';
import type { PoolDeps } from './pool-settings.js';

/** Deletes a pod. A failure is only logged, because the reaper tries again. */
export async function deletePod({ api, log }: PoolDeps, { name, uid }: { name: string; uid: string }, graceSeconds: number): Promise<void> {
  await api.deletePod(name, { uid, graceSeconds }).catch((error: unknown) => {
    log.warn({ pod: name, err: error }, 'a sandbox pod could not be deleted yet');
  });
}

interface ReaperDeps extends PoolDeps {
  /** Whether this process holds a claim of the pod. */
  readonly holds: (uid: string) => boolean;
  /** Templates that this controller knows. */
  readonly templates: ReadonlySet<string>;
}

/** A deletion takes the grace period and a moment. After this long, the node counts as dead. */
const DELETING_MAX_MS = 60_000;

/**
 * Deletes pods of any controller that have ended or never started. Several reapers may find the same pod.
 * It never deletes a claimed pod that runs. Without its controller, its lease ends it, or else its deadline.
 */
export class PodReaper {
  /** By uid: the pod's state, and the time when it entered that state. */
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
      // A node that is gone never confirms a deletion, so the second deletion has no grace period.
      if (this.deps.now() - sinceMs >= this.patienceMs(pod)) await deletePod(this.deps, pod, pod.deleting ? 0 : 1);
    }
    this.running = false;
  }

  private patienceMs({ deleting, phase, labels }: PodView): number {
    const { settings, templates } = this.deps;
    if (deleting) return DELETING_MAX_MS;
    // Leaves the pod's own controller time to read why the pod ended.
    if (phase === 'Succeeded' || phase === 'Failed') return settings.reapEveryMs / 2;
    const orphaned = !templates.has(labels[LABELS.template] ?? '') && labels[LABELS.state] !== 'claimed';
    return phase === 'Pending' || orphaned ? settings.startTimeoutMs : Infinity;
  }
}
