import { WaitingLine } from '../waiting-line.js';
import type { PodApi } from './kube-api.js';
import { LABELS, numberOf, tokenOf } from './pod-identity.js';
import { type OpenLink, PodConnector, type PodConnection } from './pod-link.js';
import { PodRemover } from './pod-removal.js';
import { PodRoster, type RosterPod } from './pod-roster.js';
import { podProblem } from './pod-state.js';
import { claimRefusal, type PodKind, PodStarter, type PoolProblem } from './pod-starter.js';
import type { KubeLogger } from './pod-view.js';
import type { PodChange } from './pod-watch.js';
import { type ClaimPace, PoolBalance } from './pool-balance.js';
import type { PoolSettings } from './pool-settings.js';
import { PoolRounds, QuietLane } from './pool-turns.js';

/** Pods of one template at this moment, and what happened to them so far. */
export interface PoolFigures {
  readonly free: number;
  readonly starting: number;
  readonly ours: number;
  /** By other controllers. */
  readonly taken: number;
  readonly ending: number;
  readonly waiting: number;
  readonly creations: number;
  /** Claims that another controller was sooner with. */
  readonly conflicts: number;
  /** Why pods don't start just now. */
  readonly problem: string | null;
}

export interface PoolDeps {
  readonly api: PodApi;
  readonly open: OpenLink;
  readonly log: KubeLogger;
  readonly settings: PoolSettings;
  readonly now: () => number;
  /** Over all templates. */
  readonly pace: ClaimPace;
}

/** A pod that this process has bound. */
export interface BoundPod {
  readonly pod: RosterPod;
  readonly link: PodConnection;
  readonly token: string;
}

interface FreePod {
  readonly pod: RosterPod;
  readonly link: PodConnection;
}

/** Of a pod's deadline, for how long it may wait for a claim. */
const WAITING_SHARE = 1 / 3;

/** The pods of one template, as this controller sees and uses them. */
export class TemplatePool {
  readonly roster: PodRoster;
  readonly starter: PodStarter;
  conflicts = 0;
  private readonly queue: WaitingLine<FreePod>;
  private readonly connector: PodConnector;
  private readonly remover: PodRemover;
  private readonly notes: QuietLane;
  private readonly balance: PoolBalance;
  private readonly rounds = new PoolRounds(() => this.look());
  private readonly changed = () => this.rounds.changed();
  /** What keeps a pod from starting just now, and may pass. */
  private obstacle: PoolProblem | null = null;

  constructor(
    private readonly kind: PodKind,
    private readonly deps: PoolDeps,
  ) {
    const { settings, now } = deps;
    this.roster = new PodRoster(kind.digest, now);
    this.starter = new PodStarter(kind, this.roster, deps, this.changed);
    this.connector = new PodConnector(deps.open, settings, (pod, link) => this.connected(pod, link));
    this.remover = new PodRemover(this.roster, deps, this.changed);
    this.notes = new QuietLane({ atOnce: 1, everyMs: 0, waitMaxMs: settings.removalMaxMs, now });
    this.balance = new PoolBalance(kind.template.warm, numberOf(kind.context.controller) / 2 ** 32, deps);
    const refusal = (before: number) => this.refusal(before, this.starter.problem ?? this.obstacle);
    this.queue = new WaitingLine({ waitingMax: settings.waitingMax, waitMs: settings.claimWaitMs, refusal });
  }

  /** Starts looking after its size, once it knows the pods that are there. */
  start(): void {
    this.rounds.start();
  }

  figures(): PoolFigures {
    const { queue, starter, conflicts } = this;
    const { creating, starting, ...counts } = this.roster.counts();
    const problem = (starter.problem ?? this.obstacle)?.message ?? null;
    return { ...counts, starting: creating + starting, waiting: queue.length, creations: starter.creations, conflicts, problem };
  }

  /** A pod that this process has attached to. */
  adopt(pod: RosterPod): void {
    this.letGo(pod)?.abandon();
    this.roster.move(pod, 'ours');
  }

  /** What the watch told. */
  observe(change: PodChange): void {
    const pod = this.roster.observe(change);
    if (!pod) return;
    if (pod.link && pod.state !== 'free') this.letGo(pod)?.abandon();
    this.connector.look(pod);
    this.changed();
  }

  /**
   * A pod, bound to the claim. No call to the API server is on the way.
   *
   * @throws EtudeError SANDBOX_CAPACITY or SANDBOX_UNAVAILABLE where none comes in time; the signal's reason when it aborts
   */
  async claim(claim: string, signal: AbortSignal, onQueued?: (before: number) => void): Promise<BoundPod> {
    this.deps.pace.note();
    let free = this.queue.length === 0 ? this.take() : null;
    for (let again = false; ; again = true) {
      free ??= await this.wait(signal, onQueued, again);
      const token = tokenOf(this.kind.tokenSecret, free.pod.view?.labels[LABELS.nonce] ?? '');
      if (await this.bind(free, claim, token)) {
        this.changed();
        if (!signal.aborted) return { ...free, token };
        void this.remove(free.pod, free.link);
        throw signal.reason as Error;
      }
      this.balance.oweNot();
      signal.throwIfAborted();
      free = this.take();
    }
  }

  /** Ends a pod of this process, when there is time. Resolves when its process 1 has ended. */
  remove(pod: RosterPod, link: PodConnection | null): Promise<void> {
    return this.remover.remove(pod, link);
  }

  /** Work that is done at a quiet moment; `run` never throws. */
  later(run: () => Promise<void>): void {
    void this.notes.add(run);
    this.changed();
  }

  /** Ends a pod that nobody has claimed; another controller's claim that is sooner wins. */
  async retire(pod: RosterPod): Promise<void> {
    const link = this.letGo(pod);
    if (!link) return;
    this.roster.move(pod, 'ours');
    const token = tokenOf(this.kind.tokenSecret, pod.view?.labels[LABELS.nonce] ?? '');
    if (await this.bind({ pod, link }, `retire-${this.kind.context.controller}`, token)) await this.remove(pod, link);
    else this.changed();
  }

  /** Claims and creates no more. Pods that wait for a claim are left to other controllers, or ended with `all`. */
  stop(all: boolean): void {
    this.rounds.stop();
    this.starter.close();
    this.connector.close();
    for (const pod of this.roster) {
      this.letGo(pod)?.abandon();
      if (all && (pod.state === 'free' || pod.state === 'starting')) void this.remove(pod, null);
    }
    this.queue.refuse(0, () => this.refusal(0, { exit: 'infra', message: 'the controller is shutting down' }));
  }

  /** Everything that was to be removed is. */
  drained(): Promise<void> {
    return this.remover.drained();
  }

  private take(): FreePod | null {
    const best = this.roster.nextFree();
    const link = best && this.letGo(best);
    return best && link ? this.reserve(best, link) : null;
  }

  private reserve(pod: RosterPod, link: PodConnection): FreePod {
    this.roster.move(pod, 'ours');
    this.balance.owe();
    return { pod, link };
  }

  private wait(signal: AbortSignal, onQueued: ((before: number) => void) | undefined, again: boolean): Promise<FreePod> {
    const { problem, held } = this.starter;
    // Nothing comes before the next try, which is not soon.
    if (problem && held && this.roster.count('creating', 'starting', 'free') === 0)
      return Promise.reject(this.refusal(this.queue.length, problem));
    const waiting = this.queue.wait(signal, onQueued, again);
    this.changed();
    return waiting;
  }

  private async bind({ pod, link }: FreePod, claim: string, token: string): Promise<boolean> {
    const { leaseMs, bindTimeoutMs } = this.deps.settings;
    const bound = await link.bind(claim, token, leaseMs, bindTimeoutMs);
    if (bound.outcome === 'bound') return true;
    link.abandon();
    if (bound.outcome === 'claimed') this.conflicts += 1;
    else this.deps.log.warn({ pod: pod.name, outcome: bound.outcome }, `a sandbox pod could not be bound: ${bound.reason}`);
    if (bound.outcome === 'silent') this.distrust(pod);
    else this.roster.move(pod, 'taken');
    this.changed();
    return false;
  }

  /** It may have been bound all the same, so it serves nobody; and others on its node may be out of reach as well. */
  private distrust(pod: RosterPod): void {
    void this.remove(pod, null);
    for (const other of this.roster) {
      if (other.state === 'free' && other.view?.nodeName === pod.view?.nodeName) this.reconnect(other);
    }
  }

  private reconnect(pod: RosterPod): void {
    this.letGo(pod)?.abandon();
    this.roster.move(pod, 'starting');
    this.connector.look(pod);
  }

  private connected(pod: RosterPod, link: PodConnection): void {
    this.starter.worked();
    if (pod.mine && pod.order === 0) this.balance.started(pod);
    pod.order = numberOf(`${this.kind.context.controller} ${pod.uid}`);
    void this.watchOver(pod, link);
    if (!pod.outdated && this.queue.length > 0) {
      this.queue.give(this.reserve(pod, link));
    } else {
      this.roster.move(pod, 'free');
      pod.link = link;
    }
    this.changed();
  }

  /** A free pod whose connection ends is connected again, or has ended, which the watch will tell. */
  private async watchOver(pod: RosterPod, link: PodConnection): Promise<void> {
    await link.gone;
    if (pod.state === 'free' && pod.link === link) this.reconnect(pod);
    this.changed();
  }

  private letGo(pod: RosterPod): PodConnection | null {
    const { link } = pod;
    pod.link = null;
    return link;
  }

  /** A pod that will never start is told to those who wait for it, and makes room. */
  private noticeProblem(pod: RosterPod): void {
    const problem = pod.view && podProblem(pod.view, this.deps.now() - pod.addedMs);
    if (!problem) return;
    if (!problem.final) {
      this.obstacle = problem;
      return;
    }
    this.starter.failed(problem);
    void this.remove(pod, null);
    this.refuseHopeless(problem);
  }

  private refuseHopeless(problem: PoolProblem): void {
    const coming = this.roster.count('creating', 'starting', 'free');
    this.queue.refuse(coming, () => this.refusal(coming, problem));
  }

  private refusal(before: number, problem: PoolProblem | null): Error {
    return claimRefusal(this.kind.name, this.kind.template.warm.max, before, problem);
  }

  /** @returns whether something is left that only waits for its time */
  private look(): boolean {
    const { settings, pace } = this.deps;
    this.roster.sweep(settings.unseenMaxMs);
    this.obstacle = null;
    for (const pod of this.roster) if (pod.state === 'starting') this.noticeProblem(pod);
    const plan = this.balance.plan(this.roster, this.queue.length);
    // One that can't be placed tells as much as ten.
    const startsMax = this.obstacle ? 0 : this.starter.startsMax;
    this.starter.start(Math.min(plan.create, startsMax), !this.balance.adopting);
    if (this.starter.problem && this.starter.held) this.refuseHopeless(this.starter.problem);
    if (plan.surplus > 0 && this.balance.overfull) this.retireOne((pod) => !pod.outdated);
    this.retireOutdated(this.obstacle !== null || (this.queue.length > 0 && plan.short === 0));
    const quiet = pace.quietFor(settings.quietMs);
    // Starting goes before ending, unless it is the places of ended pods, or their node's, that are missing.
    const crowded = plan.crowded || this.obstacle !== null;
    const first = plan.urgent && !crowded && plan.short > 0;
    this.remover.tick(plan.urgent && crowded ? 'pressed' : quiet && !first ? 'quiet' : 'busy');
    this.notes.tick(quiet ? 'quiet' : 'busy');
    return (
      plan.short > 0 || plan.surplus > 0 || this.queue.length > 0 || !this.remover.idle || !this.notes.idle || this.starter.problem !== null
    );
  }

  /** Pods of a former template leave one by one, sooner when the pods of this one lack the room. */
  private retireOutdated(pressed: boolean): void {
    if (!this.remover.idle) return;
    const { settings, now } = this.deps;
    const ageMaxMs = this.kind.template.activeDeadlineSeconds * WAITING_SHARE * 1_000;
    this.retireOne((pod) => pod.outdated && (pressed || now() - pod.sinceMs > settings.surplusAfterMs));
    // What is claimed late would meet its deadline early.
    this.retireOne((pod) => now() - pod.addedMs > ageMaxMs);
  }

  private retireOne(which: (pod: RosterPod) => boolean): void {
    for (const pod of this.roster) if (pod.state === 'free' && which(pod)) return void this.retire(pod);
  }
}
