import type { PodRoster } from './pod-roster.js';
import type { PoolDeps } from './pool-settings.js';
import type { SandboxTemplate } from './sandbox-template.js';

/** The time of the last claim, which tells when there is time for other work. */
export class ClaimPace {
  private lastMs = -Infinity;

  constructor(private readonly now: () => number) {}

  note(): void {
    this.lastMs = this.now();
  }

  /** Whether no claim came for `ms`. */
  quietFor(ms: number): boolean {
    return this.now() - this.lastMs >= ms;
  }
}

/** The state of a template's pods as one controller sees it, and its limits. */
export interface PoolSituation {
  readonly sizes: SandboxTemplate['warm'];
  /** Pods that are free, starting or requested. */
  readonly supply: number;
  readonly free: number;
  /** Pods of `supply` that are not connected yet and started recently; older ones count as stuck. */
  readonly starting: number;
  /** Slots that are taken, also by ending and outdated pods. */
  readonly places: number;
  /** Claims that wait in this controller. */
  readonly waiting: number;
  /** Pods that this controller took and has not replaced. */
  readonly owed: number;
  /** Whether pods have been missing for so long that every controller replaces them, also in the slots of others. */
  readonly adopt: boolean;
  readonly startsMax: number;
  /** Whether there is time for starts: no claim came just now. */
  readonly quiet: boolean;
}

export interface RefillPlan {
  /** Missing pods for which there are slots; 0 where there are enough pods. */
  readonly short: number;
  /** Pods to create now. */
  readonly create: number;
  /** Whether claims need pods now, or will before others could start. */
  readonly urgent: boolean;
  /** Whether slots are lacking, so that ending pods should end soon. */
  readonly crowded: boolean;
  /** Pods that this controller still has to replace. */
  readonly owed: number;
}

/**
 * Decides how many pods to create now.
 *
 * The controller that claims a pod replaces it, so that not all controllers do. A pod that is missing for long is replaced by all of
 * them, in the same slots, so that only one succeeds. Creation waits for a quiet moment, since a start takes processor time from the
 * code on its node. It doesn't wait once half of the free pods are used up.
 */
export function planRefill(now: PoolSituation): RefillPlan {
  const { max, free } = now.sizes;
  const room = Math.max(0, max - now.places);
  const missing = Math.max(0, free + now.waiting - now.supply);
  const short = Math.min(missing, room);
  // The number isn't limited by `room`, because the slots of ending pods become free later.
  const owed = Math.min(now.owed, missing);
  const mine = now.adopt ? short : Math.min(short, Math.max(owed, now.waiting - now.supply));
  const urgent = now.waiting > 0 || now.free < free / 2;
  const create = urgent || now.quiet ? Math.min(mine, Math.max(0, now.startsMax - now.starting)) : 0;
  return { short, create, urgent, crowded: missing > room, owed };
}

/** A start that takes longer counts as stuck and no longer delays others. */
const SLOW_START_MS = 10_000;

/** Tracks how many pods this controller owes, and since when pods have been missing. Surplus pods are used up by claims. */
export class PoolBalance {
  private owed = 0;
  /** null: none are missing. At the start, missing pods count as long missing, so this controller creates them. */
  private shortSinceMs: number | null = -Infinity;

  constructor(
    private readonly sizes: SandboxTemplate['warm'],
    /** From 0 to 1, different in each controller. */
    private readonly jitter: number,
    private readonly deps: PoolDeps,
  ) {}

  /** @param pods 1: this controller took a pod; -1: that pod could not be bound */
  owe(pods: 1 | -1): void {
    this.owed = Math.max(0, this.owed + pods);
  }

  /** Whether pods have been missing for so long that all controllers replace them. */
  get adopting(): boolean {
    const { now, settings } = this.deps;
    return this.shortSinceMs !== null && now() - this.shortSinceMs >= settings.adoptAfterMs * (1 + this.jitter / 2);
  }

  plan(roster: PodRoster, waiting: number): RefillPlan {
    const { settings, pace, now } = this.deps;
    const plan = planRefill({
      sizes: this.sizes,
      supply: roster.supply,
      free: roster.counts().free,
      starting: this.onTheirWay(roster),
      places: roster.size,
      waiting,
      owed: this.owed,
      adopt: this.adopting,
      startsMax: settings.startsMax,
      quiet: pace.quietFor(settings.quietMs),
    });
    this.owed = plan.owed;
    this.shortSinceMs = plan.short > 0 ? (this.shortSinceMs ?? now()) : null;
    return plan;
  }

  private onTheirWay(roster: PodRoster): number {
    const since = this.deps.now() - SLOW_START_MS;
    let count = 0;
    for (const { state, addedMs } of roster) if ((state === 'creating' || state === 'starting') && addedMs >= since) count += 1;
    return count;
  }
}
