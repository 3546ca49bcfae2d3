import type { PodRoster } from './pod-roster.js';
import type { PoolDeps } from './pool-settings.js';
import type { SandboxTemplate } from './sandbox-template.js';

/** The rate is taken over this long. */
const WINDOW_MS = 10_000;
const REMEMBERED_MAX = 4_096;

/** When claims came, which tells when there is time for something else. */
export class ClaimPace {
  private readonly times: number[] = [];

  constructor(private readonly now: () => number) {}

  note(): void {
    this.times.push(this.now());
    if (this.times.length > REMEMBERED_MAX) this.times.shift();
  }

  /** No claim for so long. */
  quietFor(ms: number): boolean {
    const last = this.times.at(-1);
    return last === undefined || this.now() - last >= ms;
  }

  /** Claims per ms. */
  get rate(): number {
    const since = this.now() - WINDOW_MS;
    while (this.times.length > 0 && (this.times[0] ?? 0) < since) this.times.shift();
    return this.times.length / WINDOW_MS;
  }
}

/** What one controller sees and wants of a template's pods. */
export interface PoolSituation {
  /** The template's. */
  readonly sizes: SandboxTemplate['warm'];
  /** Free, starting and asked for. */
  readonly supply: number;
  readonly free: number;
  /** Of `supply`: not connected yet, and not for so long that they are taken for stuck. */
  readonly starting: number;
  /** Claimed, by whomever. */
  readonly claimed: number;
  /** All places that are taken, with those of pods that are ending or outdated. */
  readonly places: number;
  /** Claims of this controller that wait. */
  readonly waiting: number;
  /** Pods that this controller took and has not replaced. */
  readonly owed: number;
  /** Claims per ms, lately. */
  readonly claimRate: number;
  /** Pods are missing for so long that it does not matter who owes them. */
  readonly adopt: boolean;
  readonly startsMax: number;
  /** `busy`: a claim came just now, or a start was made just now. `quiet`: there is time for one. `calm`: for as many as may start. */
  readonly moment: 'busy' | 'quiet' | 'calm';
}

export interface RefillPlan {
  /** Pods missing; 0 where there are enough. */
  readonly short: number;
  /** Pods to create now. */
  readonly create: number;
  /** Whether claims need them now, or would before a quiet moment comes. */
  readonly urgent: boolean;
  /** Pods are missing for want of places: those that end should end soon. */
  readonly crowded: boolean;
  /** Pods that this controller still has to replace. */
  readonly owed: number;
}

/** From a pod's creation to its first frame, about. */
const START_MS = 1_500;

/**
 * How many pods to create now.
 *
 * Who claims replaces, so that controllers don't all replace the same pod; what nobody replaces is made up by all of them after a
 * while, in the same places, so that only one succeeds. Creating waits for a quiet moment unless the pods that are left would run out
 * in the time that starting others takes: a start takes its node's processor away from whatever runs there.
 */
export function planRefill(now: PoolSituation): RefillPlan {
  const { min, max, free } = now.sizes;
  const wanted = Math.max(free, min - now.claimed) + now.waiting;
  const room = Math.max(0, max - now.places);
  const missing = Math.max(0, wanted - now.supply);
  const short = Math.min(missing, room);
  // Kept beyond `room`: places are still taken by pods that end, and free later.
  const owed = Math.min(now.owed, missing);
  const mine = now.adopt ? short : Math.min(short, Math.max(owed, now.waiting - now.supply));
  const lowWater = Math.min(Math.ceil(now.claimRate * START_MS), free);
  const urgent = now.waiting > 0 || now.free < lowWater || (now.free === 0 && free > 0);
  const atOnce = urgent || now.moment === 'calm' ? now.startsMax : now.moment === 'quiet' ? 1 : 0;
  const create = Math.min(mine, atOnce, Math.max(0, now.startsMax - now.starting));
  return { short, create, urgent, crowded: missing > room, owed };
}

/** A start that takes longer is not waited for before the next. */
const SLOW_START_MS = 10_000;

/** Keeps account of how many pods there should be, and for how long there have been fewer. More are used up by claims. */
export class PoolBalance {
  private owed = 0;
  private lastCreateMs = -Infinity;
  /** At the start nobody is waited for: what is missing is made up. */
  private shortSinceMs: number | null = -Infinity;

  constructor(
    private readonly sizes: SandboxTemplate['warm'],
    /** Between 0 and 1, other in each controller. */
    private readonly jitter: number,
    private readonly deps: PoolDeps,
  ) {}

  /** @param pods 1: this controller took a pod; -1: another one was sooner */
  owe(pods: 1 | -1): void {
    this.owed = Math.max(0, this.owed + pods);
  }

  /** Whether pods are missing for so long that all controllers make them up. */
  get adopting(): boolean {
    const { now, settings } = this.deps;
    return this.shortSinceMs !== null && now() - this.shortSinceMs >= settings.adoptAfterMs * (1 + this.jitter / 2);
  }

  plan(roster: PodRoster, waiting: number): RefillPlan {
    const { settings, pace, now } = this.deps;
    const { free, ours, taken } = roster.counts();
    const plan = planRefill({
      sizes: this.sizes,
      supply: roster.supply,
      free,
      starting: this.onTheirWay(roster),
      claimed: ours + taken,
      places: roster.size,
      waiting,
      owed: this.owed,
      claimRate: pace.rate,
      adopt: this.adopting,
      startsMax: settings.startsMax,
      moment: this.moment,
    });
    this.owed = plan.owed;
    if (plan.create > 0) this.lastCreateMs = now();
    this.shortSinceMs = plan.short > 0 ? (this.shortSinceMs ?? now()) : null;
    return plan;
  }

  private onTheirWay(roster: PodRoster): number {
    const since = this.deps.now() - SLOW_START_MS;
    let count = 0;
    for (const { state, addedMs } of roster) if ((state === 'creating' || state === 'starting') && addedMs >= since) count += 1;
    return count;
  }

  private get moment(): PoolSituation['moment'] {
    const { settings, pace, now } = this.deps;
    if (pace.quietFor(settings.calmMs)) return 'calm';
    return pace.quietFor(settings.quietMs) && now() - this.lastCreateMs >= settings.spacingMs ? 'quiet' : 'busy';
  }
}
