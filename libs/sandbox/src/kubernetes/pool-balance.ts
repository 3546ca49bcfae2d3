import type { PodRoster } from './pod-roster.js';
import type { PoolDeps } from './pool-settings.js';
import type { SandboxTemplate } from './sandbox-template.js';

export interface RefillPlan {
  /** Number of missing pods for which slots are free. */
  readonly short: number;
  readonly create: number;
}

/** A start that takes longer counts as stuck and no longer delays others. */
const SLOW_START_MS = 10_000;

/**
 * Decides how many pods this controller creates.
 *
 * The controller that claims a pod owes its replacement, so that not all controllers create one. A pod that is missing for long is
 * replaced by all of them, in the same slots, so that only one succeeds. Claims use up surplus pods.
 */
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

  /**
   * Creation waits for a moment without claims, because a start takes processor time from the code on its node. It doesn't wait once half
   * of the free pods are used up.
   *
   * @param waiting claims that wait in this controller
   */
  plan(roster: PodRoster, waiting: number): RefillPlan {
    const { settings, lastClaim, now } = this.deps;
    const { max, free } = this.sizes;
    const missing = Math.max(0, free + waiting - roster.supply);
    const short = Math.min(missing, Math.max(0, max - roster.size));
    // Not limited by the free slots, because the slots of ending pods become free later.
    this.owed = Math.min(this.owed, missing);
    const mine = this.adopting ? short : Math.min(short, Math.max(this.owed, waiting - roster.supply));
    this.shortSinceMs = short > 0 ? (this.shortSinceMs ?? now()) : null;
    const isUrgent = waiting > 0 || roster.counts().free < free / 2;
    if (!isUrgent && now() - lastClaim.atMs < settings.quietMs) return { short, create: 0 };
    return { short, create: Math.min(mine, Math.max(0, settings.startsMax - this.onTheirWay(roster))) };
  }

  private onTheirWay(roster: PodRoster): number {
    const since = this.deps.now() - SLOW_START_MS;
    let count = 0;
    for (const { state, addedMs } of roster) if ((state === 'creating' || state === 'starting') && addedMs >= since) count += 1;
    return count;
  }
}
