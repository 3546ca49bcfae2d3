import { LABELS } from './pod-identity.js';
import type { PodView } from './pod-state.js';
import type { PoolDeps, PoolSettings } from './pool-settings.js';

/** Deletes a pod. A failure is only logged, because the reaper tries again. */
export async function deletePod({ api, log }: PoolDeps, { name, uid }: { name: string; uid: string }, graceSeconds: number): Promise<void> {
  await api.deletePod(name, { uid, graceSeconds }).catch((error: unknown) => {
    log.warn({ pod: name, err: error }, 'a sandbox pod could not be deleted yet');
  });
}

/** If a deletion takes longer than this, the pod's node counts as dead. */
const DELETING_MAX_MS = 60_000;

/**
 * Deletes pods of any controller that have ended or never started, now and every `reapEveryMs`. Several reapers may find the same pod.
 * A reaper never deletes a claimed pod that runs. If the controller of such a pod is dead, the pod ends with its lease or its deadline.
 *
 * @param templates names of the templates that this controller has
 * @param holds whether this process holds a claim of the pod
 * @returns a function that stops the reaper
 */
export function reapPods(deps: PoolDeps, templates: ReadonlySet<string>, holds: (uid: string) => boolean): () => void {
  const { feed, settings } = deps;
  /** By uid: the pod's state, and the time when it entered that state. */
  let seen = new Map<string, { readonly what: string; readonly sinceMs: number }>();
  let running = false;
  const round = async () => {
    if (running) return;
    running = true;
    const before = seen;
    seen = new Map();
    for (const pod of [...feed.pods.values()].filter(({ uid }) => !holds(uid))) {
      const what = pod.deleting ? 'deleting' : pod.phase;
      const known = before.get(pod.uid);
      const { sinceMs } = known?.what === what ? known : { sinceMs: performance.now() };
      seen.set(pod.uid, { what, sinceMs });
      // A dead node never confirms a deletion, so the second deletion has no grace period and needs no confirmation.
      if (performance.now() - sinceMs >= patienceMs(pod, settings, templates)) await deletePod(deps, pod, pod.deleting ? 0 : 1);
    }
    running = false;
  };
  void round();
  const timer = setInterval(() => void round(), settings.reapEveryMs);
  return () => clearInterval(timer);
}

function patienceMs({ deleting, phase, labels }: PodView, settings: PoolSettings, templates: ReadonlySet<string>): number {
  if (deleting) return DELETING_MAX_MS;
  // The pod's own controller needs time to read why the pod ended.
  if (phase === 'Succeeded' || phase === 'Failed') return settings.reapEveryMs / 2;
  const orphaned = !templates.has(labels[LABELS.template] ?? '') && labels[LABELS.state] !== 'claimed';
  return phase === 'Pending' || orphaned ? settings.startTimeoutMs : Infinity;
}
