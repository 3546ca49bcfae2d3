import { setTimeout as sleep } from 'node:timers/promises';
import type { LostSandbox } from '../sandbox-driver.js';
import { WaitingLine } from '../waiting-line.js';
import { LABELS, numberOf, type PodPlace, supervisorNameOf, tokenOf } from './pod-identity.js';
import type { BindOutcome, PodConnection } from './pod-link.js';
import { deletePod } from './pod-removal.js';
import { PodRoster, type RosterPod } from './pod-roster.js';
import { podProblem } from './pod-state.js';
import type { PodKind } from './pod-spec.js';
import { claimRefusal, PodStarter, PoolBalance } from './pod-starter.js';
import type { PodChange } from './pod-watch.js';
import type { PoolDeps } from './pool-settings.js';

interface OwnPod {
  readonly pod: RosterPod;
  readonly link: PodConnection;
}

/** The part of its `activeDeadlineSeconds` for which a pod may wait for a claim. */
const WAITING_SHARE = 1 / 3;
/** Time between two checks of an unchanged pool: while work is left, and while none is left. */
const TICK_MS = 25;
const IDLE_TICK_MS = 1_000;
const CONNECT_WAIT_MIN_MS = 20;
const CONNECT_WAIT_MAX_MS = 1_000;

/** The pods of one template, as this controller sees and uses them. */
export class TemplatePool {
  private readonly roster: PodRoster;
  private readonly starter: PodStarter;
  private readonly queue: WaitingLine<OwnPod>;
  private readonly removals = new Set<Promise<void>>();
  private readonly balance: PoolBalance;
  /** Number of binds that failed because another controller was faster. */
  private conflicts = 0;
  /** A temporary problem that keeps a pod from starting; null without a problem. */
  private obstacle: LostSandbox | null = null;
  private running = true;
  private due = false;
  private timer: NodeJS.Timeout | undefined;
  private readonly changed = () => this.lookSoon();

  constructor(
    readonly kind: PodKind,
    private readonly deps: PoolDeps,
  ) {
    const { settings } = deps;
    this.roster = new PodRoster(kind.digest);
    this.starter = new PodStarter(kind, this.roster, deps, this.changed);
    this.balance = new PoolBalance(kind.template.warm, deps);
    const refusal = (before: number) => claimRefusal(kind, before, this.problem);
    this.queue = new WaitingLine({ waitingMax: settings.waitingMax, waitMs: settings.claimWaitMs, refusal });
    this.lookSoon();
  }

  /** Current numbers of pods by state, and counters since the start. `problem`: why pods don't start at present. */
  figures() {
    const { creating, starting, ...counts } = this.roster.counts();
    const { queue, starter, conflicts, problem } = this;
    const { creations } = starter;
    return { ...counts, starting: creating + starting, waiting: queue.length, creations, conflicts, problem: problem?.message ?? null };
  }

  observe(change: PodChange): void {
    const pod = this.roster.observe(change);
    if (!pod) return;
    if (pod.state !== 'free') this.letGo(pod)?.abandon();
    void this.connect(pod);
    this.lookSoon();
  }

  /**
   * Takes a pod and binds it to the claim, without a call to the API server.
   *
   * @throws EtudeError SANDBOX_CAPACITY or SANDBOX_UNAVAILABLE if no pod comes in time; the reason of an aborted signal
   */
  async claim(claim: string, signal: AbortSignal): Promise<OwnPod> {
    this.deps.lastClaim.atMs = performance.now();
    let own = this.queue.length === 0 ? this.take() : null;
    for (let again = false; ; again = true) {
      own ??= await this.wait(signal, again);
      const outcome = await this.bind(own, claim);
      if (outcome === 'bound') {
        this.lookSoon();
        if (!signal.aborted) return own;
        void this.remove(own.pod, own.link);
        throw signal.reason as Error;
      }
      // This controller removed the silent pod, so it owes the replacement.
      if (outcome !== 'silent') this.balance.owe(-1);
      signal.throwIfAborted();
      own = this.take();
    }
  }

  /** Marks a pod as this process's own after an attach. */
  adopt(place: PodPlace): RosterPod {
    const pod = this.roster.adopt(place);
    this.letGo(pod)?.abandon();
    return pod;
  }

  /** Ends a pod of this process, and then deletes it. Resolves when its process 1 has ended. */
  remove(pod: RosterPod, link: PodConnection | null): Promise<void> {
    this.roster.move(pod, 'ending');
    const ended = link?.destroy() ?? Promise.resolve();
    const { name, uid } = pod;
    const deleted = ended.then(() => (uid === null ? undefined : deletePod(this.deps, { name, uid }, 1)));
    const removal = deleted.finally(() => {
      this.removals.delete(removal);
      this.lookSoon();
    });
    this.removals.add(removal);
    return ended;
  }

  /** Stops claims and creations. Unclaimed pods stay for other controllers; with `all` they are removed. */
  stop(all: boolean): void {
    this.running = false;
    clearTimeout(this.timer);
    this.starter.close();
    for (const pod of this.roster.values()) {
      this.letGo(pod)?.abandon();
      if (all && (pod.state === 'free' || pod.state === 'starting')) void this.remove(pod, null);
    }
    this.queue.refuse(() => claimRefusal(this.kind, 0, { exit: 'infra', message: 'the controller is shutting down' }));
  }

  /** Resolves when the removals that have begun are over. */
  async drained(): Promise<void> {
    while (this.removals.size > 0) await Promise.all(this.removals);
  }

  private get problem(): LostSandbox | null {
    return this.starter.problem ?? this.obstacle;
  }

  private take(): OwnPod | null {
    const pod = this.roster.nextFree();
    const link = pod && this.letGo(pod);
    if (!pod || !link) return null;
    this.balance.owe(1);
    return this.own(pod, link);
  }

  private own(pod: RosterPod, link: PodConnection): OwnPod {
    this.roster.move(pod, 'ours');
    return { pod, link };
  }

  private wait(signal: AbortSignal, again: boolean): Promise<OwnPod> {
    const waiting = this.queue.wait(signal, again);
    this.lookSoon();
    return waiting;
  }

  private async bind({ pod, link }: OwnPod, claim: string): Promise<BindOutcome['outcome']> {
    const { leaseMs, bindTimeoutMs } = this.deps.settings;
    const token = tokenOf(this.deps.tokenSecret, pod.view?.labels[LABELS.nonce] ?? '');
    const bound = await link.bind(claim, token, leaseMs, bindTimeoutMs);
    if (bound.outcome === 'bound') return 'bound';
    link.abandon();
    if (bound.outcome === 'claimed') this.conflicts += 1;
    else this.deps.log.warn({ pod: pod.name, outcome: bound.outcome }, `a sandbox pod could not be bound: ${bound.reason}`);
    if (bound.outcome === 'silent') this.distrust(pod);
    else this.roster.move(pod, 'taken');
    this.lookSoon();
    return bound.outcome;
  }

  /** Removes a pod that did not answer a bind, because it may be bound now. Reconnects to the free pods of its node, which may be cut off too. */
  private distrust(pod: RosterPod): void {
    void this.remove(pod, null);
    for (const other of this.roster.values())
      if (other.state === 'free' && other.view?.nodeName === pod.view?.nodeName) this.reconnect(other);
  }

  private reconnect(pod: RosterPod): void {
    this.letGo(pod)?.abandon();
    this.roster.move(pod, 'starting');
    void this.connect(pod);
  }

  /** Tries to connect while the pod starts. Failures are ignored, because the pod's status has the problem. */
  private async connect(pod: RosterPod): Promise<void> {
    const wanted = () => this.running && pod.state === 'starting' && Boolean(pod.view?.ip);
    if (pod.connecting || !wanted()) return;
    pod.connecting = true;
    const { open, settings } = this.deps;
    for (let waitMs = CONNECT_WAIT_MIN_MS; wanted(); waitMs = Math.min(CONNECT_WAIT_MAX_MS, waitMs * 1.5)) {
      const supervisor = supervisorNameOf({ name: pod.name, uid: pod.uid ?? '' });
      const link = await open({ ip: pod.view?.ip ?? '', port: settings.port, supervisor }, settings).catch(() => null);
      if (link && wanted()) this.connected(pod, link);
      else link?.abandon();
      if (!link) await sleep(waitMs, undefined, { ref: false });
    }
    pod.connecting = false;
  }

  private connected(pod: RosterPod, link: PodConnection): void {
    this.starter.worked();
    pod.order = numberOf(`${this.kind.controller} ${pod.uid}`);
    void this.watchOver(pod, link);
    if (!pod.outdated && this.queue.length > 0) {
      this.balance.owe(1);
      this.queue.give(this.own(pod, link));
    } else {
      this.roster.move(pod, 'free');
      pod.link = link;
    }
    this.lookSoon();
  }

  /** Reconnects to a free pod whose connection ends. If the pod has ended, the watch will report it. */
  private async watchOver(pod: RosterPod, link: PodConnection): Promise<void> {
    await link.gone;
    if (pod.state === 'free' && pod.link === link) this.reconnect(pod);
    this.lookSoon();
  }

  private letGo(pod: RosterPod): PodConnection | null {
    const { link } = pod;
    pod.link = null;
    return link;
  }

  /** Schedules one `look` for all changes that come together. */
  private lookSoon(): void {
    if (this.due || !this.running) return;
    this.due = true;
    setImmediate(() => {
      this.due = false;
      if (!this.running) return;
      const busy = this.look();
      clearTimeout(this.timer);
      this.timer = setTimeout(this.changed, busy ? TICK_MS : IDLE_TICK_MS);
    });
  }

  /** @returns whether work is left */
  private look(): boolean {
    this.roster.sweep(this.deps.settings.unseenMaxMs);
    this.obstacle = null;
    for (const pod of this.roster.values()) if (pod.state === 'starting') this.noticeProblem(pod);
    const plan = this.balance.plan(this.roster, this.queue.length);
    // While one pod can't be scheduled, no other pod can.
    if (!this.obstacle) this.starter.start(Math.min(plan.create, this.starter.startsMax), !this.balance.adopting);
    if (this.removals.size === 0) this.retireOld(this.obstacle !== null || (this.queue.length > 0 && plan.short === 0));
    return plan.short > 0 || this.queue.length > 0 || this.starter.problem !== null;
  }

  /** Records why a pod doesn't start, for claims that get no pod in time. After a final problem, removes the pod. */
  private noticeProblem(pod: RosterPod): void {
    const problem = pod.view && podProblem(pod.view, performance.now() - pod.addedMs);
    if (!problem) return;
    if (!problem.final) {
      this.obstacle = problem;
      return;
    }
    this.starter.failed(problem);
    void this.remove(pod, null);
  }

  /** Retires one outdated pod: at once if `pressed`, because current pods need its slot. Also retires one pod that waited too long for a claim. */
  private retireOld(pressed: boolean): void {
    const { settings } = this.deps;
    const ageMaxMs = this.kind.template.activeDeadlineSeconds * WAITING_SHARE * 1_000;
    this.retireOne((pod) => pod.outdated && (pressed || performance.now() - pod.sinceMs > settings.outdatedMaxMs));
    // A pod that is claimed late would soon reach its deadline.
    this.retireOne((pod) => performance.now() - pod.addedMs > ageMaxMs);
  }

  /** Removes one free pod that matches. Binds it first, so that no other controller can claim it meanwhile. */
  private retireOne(which: (pod: RosterPod) => boolean): void {
    for (const pod of this.roster.values()) {
      const link = pod.state === 'free' && which(pod) ? this.letGo(pod) : null;
      if (!link) continue;
      const bound = this.bind(this.own(pod, link), `retire-${this.kind.controller}`);
      void bound.then((outcome) => (outcome === 'bound' ? this.remove(pod, link) : undefined));
      return;
    }
  }
}
