/** What one controller sees of a template's pods. */
export interface PoolCounts {
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
}

export interface PoolDemand {
  readonly min: number;
  readonly max: number;
  readonly free: number;
  /** Pods that this controller took and has not replaced. */
  readonly owed: number;
  /** Claims per ms, lately. */
  readonly claimRate: number;
  /** From a pod's creation to its first frame. */
  readonly startMs: number;
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
  /** Pods beyond the target. */
  readonly surplus: number;
  /** Pods that this controller still has to replace. */
  readonly owed: number;
}

/**
 * How many pods to create now.
 *
 * Who claims replaces, so that controllers don't all replace the same pod; what nobody replaces is made up by all of them after a
 * while, in the same places, so that only one succeeds. Creating waits for a quiet moment unless the pods that are left would run out
 * in the time that starting others takes: a start takes its node's processor away from whatever runs there.
 */
export function planRefill(counts: PoolCounts, demand: PoolDemand): RefillPlan {
  const wanted = Math.max(demand.free, demand.min - counts.claimed) + counts.waiting;
  const room = Math.max(0, demand.max - counts.places);
  const missing = Math.max(0, wanted - counts.supply);
  const short = Math.min(missing, room);
  // Kept beyond `room`: places are still taken by pods that end, and free later.
  const owed = Math.min(demand.owed, missing);
  const mine = demand.adopt ? short : Math.min(short, Math.max(owed, counts.waiting - counts.supply));
  const lowWater = Math.min(Math.ceil(demand.claimRate * demand.startMs), demand.free);
  const urgent = counts.waiting > 0 || counts.free < lowWater || (counts.free === 0 && demand.free > 0);
  const now = urgent || demand.moment === 'calm' ? demand.startsMax : demand.moment === 'quiet' ? 1 : 0;
  const create = Math.min(mine, now, Math.max(0, demand.startsMax - counts.starting));
  return { short, create, urgent, crowded: missing > room, owed, surplus: Math.max(0, counts.supply - wanted) };
}
