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
  /** Pods that others owe and are missing for so long that it does not matter who owes them. */
  readonly orphaned: number;
  readonly startsMax: number;
  /** `busy`: a claim came just now, or a start was made just now. `quiet`: there is time for one. `calm`: for as many as may start. */
  readonly moment: 'busy' | 'quiet' | 'calm';
}

export interface RefillPlan {
  /** Pods missing; 0 where there are enough. */
  readonly short: number;
  /** Pods to create now. */
  readonly create: number;
  /** Of `create`: those that others owe. */
  readonly adopt: number;
  /** Whether claims need them now, or would before a quiet moment comes. */
  readonly urgent: boolean;
  /** Pods are missing for want of places: those that end should end soon. */
  readonly crowded: boolean;
  /** Pods beyond the target. */
  readonly surplus: number;
  /** Pods that this controller still has to replace. */
  readonly owed: number;
}

/** How many pods are missing, for the target and for claims that wait, and how many of them this controller owes. */
export function shortageOf(counts: PoolCounts, demand: Pick<PoolDemand, 'min' | 'max' | 'free' | 'owed'>) {
  const wanted = Math.max(demand.free, demand.min - counts.claimed) + counts.waiting;
  const room = Math.max(0, demand.max - counts.places);
  const missing = Math.max(0, wanted - counts.supply);
  // Owed beyond `room` too: places are still taken by pods that end, and free later.
  return { wanted, missing, room, short: Math.min(missing, room), owed: Math.min(demand.owed, missing) };
}

/**
 * How many pods to create now.
 *
 * Who claims replaces, so that controllers don't all replace the same pod; what nobody replaces is made up by all of them after a
 * while, in the same places, so that only one succeeds. Creating waits for a quiet moment unless the pods that are left would run out
 * in the time that starting others takes: a start takes its node's processor away from whatever runs there.
 */
export function planRefill(counts: PoolCounts, demand: PoolDemand): RefillPlan {
  const { wanted, missing, room, short, owed } = shortageOf(counts, demand);
  const mine = Math.min(short, Math.max(owed + demand.orphaned, counts.waiting - counts.supply));
  const lowWater = Math.min(Math.ceil(demand.claimRate * demand.startMs), demand.free);
  const urgent = counts.waiting > 0 || counts.free < lowWater || (counts.free === 0 && demand.free > 0);
  const now = urgent || demand.moment === 'calm' ? demand.startsMax : demand.moment === 'quiet' ? 1 : 0;
  const create = Math.min(mine, now, Math.max(0, demand.startsMax - counts.starting));
  const adopt = Math.max(0, Math.min(create - owed, demand.orphaned));
  return { short, create, adopt, urgent, crowded: missing > room, owed, surplus: Math.max(0, counts.supply - wanted) };
}
