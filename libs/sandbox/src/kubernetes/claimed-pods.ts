import { setTimeout as sleep } from 'node:timers/promises';
import type { ClaimedSandbox, LostSandbox, SandboxLink } from '../sandbox-driver.js';
import { KERNEL_LOST, SupervisorClient } from '../supervisor-client.js';
import { placeOf, type PodPlace } from './pod-identity.js';
import { bindAgain, type PodConnection } from './pod-link.js';
import { podProblem, type PodView } from './pod-state.js';
import type { PoolDeps } from './pool-settings.js';

interface Held {
  readonly place: PodPlace;
  readonly end: (link: PodConnection | null) => Promise<void>;
  link: PodConnection;
  /** The last state of the pod from the watch; null before the first state. */
  view: PodView | null;
  /** Whether the watch has reported the pod as deleted. */
  gone: boolean;
}

const FIRST_WAIT_MS = 50;
const WAIT_MAX_MS = 1_000;
const POLL_MS = 25;
/** After this many refused connections, process 1 of the pod counts as ended. */
const REFUSALS_MAX = 3;

/** The pods that this process has claimed. Renews their leases, reconnects to them, and finds the reason of a loss. */
export class ClaimedPods {
  private readonly held = new Set<Held>();
  private readonly renewal: NodeJS.Timeout;
  private readonly unsubscribe: () => void;
  private readonly stop = new AbortController();

  constructor(private readonly deps: PoolDeps) {
    this.renewal = setInterval(() => this.renew(), deps.settings.leaseRenewMs);
    this.unsubscribe = deps.feed.subscribe(({ pod, gone }) => {
      for (const held of this.held) {
        if (held.place.uid !== pod.uid) continue;
        held.view = pod;
        held.gone ||= gone;
        // The connection of an ended pod may never end by itself. It is closed when the last frames must have arrived.
        if (ended(held)) setTimeout(() => held.link.abandon(), deps.settings.explainMs).unref();
      }
    });
  }

  holds(uid: string): boolean {
    for (const held of this.held) if (held.place.uid === uid) return true;
    return false;
  }

  /** @param end destroys the pod; called once, at its release or loss */
  hold(place: PodPlace, link: PodConnection, end: (link: PodConnection | null) => Promise<void>): ClaimedSandbox {
    const view = this.deps.feed.pods.get(place.pod);
    const held: Held = { place, end, link, view: view?.uid === place.uid ? view : null, gone: false };
    this.held.add(held);
    const client = new SupervisorClient(link, {
      claim: place.claim,
      place: placeOf(place),
      recover: () => this.recover(held),
      onRelease: () => this.finish(held, held.link),
      onLeave: async () => {
        this.held.delete(held);
        held.link.abandon();
      },
    });
    void client.lost.then(() => this.finish(held, null));
    return client;
  }

  async close(): Promise<void> {
    clearInterval(this.renewal);
    this.unsubscribe();
    this.stop.abort();
    await Promise.all([...this.held].map((held) => this.finish(held, held.link)));
  }

  private renew(): void {
    for (const { link, place } of this.held) {
      link.send({ type: 'lease', claim: place.claim, leaseMs: this.deps.settings.leaseMs });
      if (!link.ping()) link.abandon();
    }
  }

  private async finish(held: Held, link: PodConnection | null): Promise<void> {
    if (this.held.delete(held)) await held.end(link);
  }

  /** Tries for `leaseMs` to connect again with the same claim. Returns the connection, or why the sandbox is lost. */
  private async recover(held: Held): Promise<SandboxLink | LostSandbox> {
    if (held.link.ending || !this.held.has(held)) return KERNEL_LOST;
    if (held.link.superseded) {
      // The sandbox continues for its new holder, so it must not be destroyed.
      this.held.delete(held);
      return infra(`another connection has taken over the sandbox in the pod ${held.place.pod}`);
    }
    const { leaseMs } = this.deps.settings;
    const until = performance.now() + leaseMs;
    let refusals = 0;
    for (let waitMs = FIRST_WAIT_MS; performance.now() < until && refusals < REFUSALS_MAX; waitMs = Math.min(WAIT_MAX_MS, waitMs * 2)) {
      if (this.stop.signal.aborted || !this.held.has(held)) return KERNEL_LOST;
      if (ended(held)) break;
      const next = await this.reconnect(held);
      if (typeof next === 'object') return next;
      if (next === 'refused') refusals += 1;
      await sleep(waitMs);
    }
    return this.explain(held, refusals > 0);
  }

  private async reconnect(held: Held): Promise<PodConnection | LostSandbox | 'refused' | 'silent'> {
    const { place } = held;
    try {
      held.link = await bindAgain(place, this.deps, this.stop.signal);
      this.deps.log.info({ pod: place.pod }, 'connected to a claimed sandbox pod again');
      return held.link;
    } catch (error) {
      const { code, refused, message } = error as Error & { code?: string; refused?: boolean };
      if (refused) return infra(`the pod ${place.pod} does not know its claim any more: ${message}`);
      return code === 'ECONNREFUSED' ? 'refused' : 'silent';
    }
  }

  /** Finds the reason of the loss in the pod's status, which arrives a little later than the end of the connection. */
  private async explain(held: Held, processEnded: boolean): Promise<LostSandbox> {
    const until = performance.now() + this.deps.settings.explainMs;
    while (performance.now() < until && !ended(held)) await sleep(POLL_MS);
    if (!ended(held)) held.view = await this.deps.api.getPod(held.place.pod).catch(() => held.view);
    const { view, gone, place } = held;
    const problem = view && view.uid === place.uid ? podProblem(view) : null;
    if (problem) return { exit: problem.exit, message: problem.message };
    if (gone || !view || view.uid !== place.uid || view.deleting) return infra(`the pod ${place.pod} was deleted by somebody else`);
    if (processEnded || ended(held)) return KERNEL_LOST;
    return infra(`the pod ${place.pod} could not be reached for ${this.deps.settings.leaseMs} ms`);
  }
}

const infra = (message: string): LostSandbox => ({ exit: 'infra', message });

/** Whether the pod is gone or has a final problem. Deleted and finished pods have a final problem. */
const ended = ({ view, gone }: Held): boolean => gone || (view !== null && podProblem(view)?.final === true);
