import { setTimeout as sleep } from 'node:timers/promises';
import { supervisorNameOf } from './pod-identity.js';
import type { LinkTimes, PodAddress, PodConnection } from './pod-link.js';
import type { RosterPod } from './pod-roster.js';

export type OpenLink = (address: PodAddress, times: LinkTimes, signal: AbortSignal) => Promise<PodConnection>;

const FIRST_WAIT_MS = 20;
const WAIT_MAX_MS = 1_000;

/** Keeps trying to connect to pods that are starting, until each is connected, has left, or is no longer starting. */
export class PodConnector {
  private readonly trying = new Map<RosterPod, AbortController>();

  constructor(
    private readonly open: OpenLink,
    private readonly times: LinkTimes & { readonly port: number },
    private readonly connected: (pod: RosterPod, link: PodConnection) => void,
  ) {}

  /** Call it whenever something about the pod changed. */
  look(pod: RosterPod): void {
    const wanted = pod.state === 'starting' && pod.uid !== null && Boolean(pod.view?.ip);
    const stop = this.trying.get(pod);
    if (!wanted) stop?.abort();
    else if (!stop) void this.connect(pod);
  }

  close(): void {
    for (const stop of this.trying.values()) stop.abort();
  }

  private async connect(pod: RosterPod): Promise<void> {
    const stop = new AbortController();
    this.trying.set(pod, stop);
    try {
      for (let waitMs = FIRST_WAIT_MS; pod.state === 'starting' && !stop.signal.aborted; waitMs = Math.min(WAIT_MAX_MS, waitMs * 1.5)) {
        const link = await this.attempt(pod, stop.signal);
        if (link) return this.hand(pod, link, stop);
        await sleep(waitMs, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    } finally {
      if (this.trying.get(pod) === stop) this.trying.delete(pod);
    }
  }

  /** null: not yet. Why does not matter while the pod starts; what is wrong with it is told by its status. */
  private async attempt(pod: RosterPod, signal: AbortSignal): Promise<PodConnection | null> {
    const { ip } = pod.view ?? {};
    if (!ip || pod.uid === null) return null;
    const address = { ip, port: this.times.port, supervisor: supervisorNameOf({ name: pod.name, uid: pod.uid }) };
    return this.open(address, this.times, signal).catch(() => null);
  }

  private hand(pod: RosterPod, link: PodConnection, stop: AbortController): void {
    if (stop.signal.aborted || pod.state !== 'starting') return link.abandon();
    this.trying.delete(pod);
    this.connected(pod, link);
  }
}
