import type { ClaimPace } from './claim-pace.js';
import type { PodRoster, RosterPod } from './pod-roster.js';
import type { PoolSettings } from './pool-settings.js';
import { planRefill, type RefillPlan } from './refill-plan.js';
import type { SandboxTemplate } from './sandbox-template.js';

/** A start that takes longer is not waited for before the next. */
const SLOW_START_MS = 10_000;
/** Until one was measured. */
const FIRST_START_MS = 1_500;

export interface BalanceDeps {
  readonly settings: PoolSettings;
  readonly pace: ClaimPace;
  readonly now: () => number;
}

/** Keeps account of how many pods there should be, and for how long there have been fewer or more. */
export class PoolBalance {
  private owed = 0;
  private startMs = FIRST_START_MS;
  private lastCreateMs = -Infinity;
  /** At the start nobody is waited for: what is missing is made up. */
  private shortSinceMs: number | null = -Infinity;
  private surplusSinceMs: number | null = null;

  constructor(
    private readonly sizes: SandboxTemplate['warm'],
    /** Between 0 and 1, other in each controller. */
    private readonly jitter: number,
    private readonly deps: BalanceDeps,
  ) {}

  /** This controller took a pod, or one of its pods ended. */
  owe(): void {
    this.owed += 1;
  }

  /** Another controller was sooner. */
  oweNot(): void {
    this.owed = Math.max(0, this.owed - 1);
  }

  /** How long a pod of this controller took to start. */
  started(pod: RosterPod): void {
    this.startMs += (this.deps.now() - pod.addedMs - this.startMs) / 8;
  }

  /** Whether pods are missing for so long that all controllers make them up. */
  get adopting(): boolean {
    return this.since(this.shortSinceMs) >= this.deps.settings.adoptAfterMs * (1 + this.jitter / 2);
  }

  /** Whether there are too many for so long that some are given up; one controller's word at a time. */
  get overfull(): boolean {
    return this.since(this.surplusSinceMs) >= this.deps.settings.surplusAfterMs * (1 + this.jitter);
  }

  plan(roster: PodRoster, waiting: number): RefillPlan {
    const { settings, pace, now } = this.deps;
    const { creating, starting, free, ours, taken } = roster.counts();
    const plan = planRefill(
      {
        supply: creating + starting + free,
        free,
        starting: this.onTheirWay(roster),
        claimed: ours + taken,
        places: roster.size,
        waiting,
      },
      {
        ...this.sizes,
        owed: this.owed,
        claimRate: pace.rate,
        startMs: this.startMs,
        adopt: this.adopting,
        startsMax: settings.startsMax,
        moment: this.moment,
      },
    );
    this.owed = plan.owed;
    if (plan.create > 0) this.lastCreateMs = now();
    this.shortSinceMs = plan.short > 0 ? (this.shortSinceMs ?? now()) : null;
    this.surplusSinceMs = plan.surplus > 0 ? (this.surplusSinceMs ?? now()) : null;
    return plan;
  }

  private onTheirWay(roster: PodRoster): number {
    const since = this.deps.now() - SLOW_START_MS;
    let count = 0;
    for (const { state, addedMs } of roster) if ((state === 'creating' || state === 'starting') && addedMs >= since) count += 1;
    return count;
  }

  private get moment(): 'busy' | 'quiet' | 'calm' {
    const { settings, pace, now } = this.deps;
    if (pace.quietFor(settings.calmMs)) return 'calm';
    return pace.quietFor(settings.quietMs) && now() - this.lastCreateMs >= settings.spacingMs ? 'quiet' : 'busy';
  }

  private since(ms: number | null): number {
    return ms === null ? 0 : this.deps.now() - ms;
  }
}
