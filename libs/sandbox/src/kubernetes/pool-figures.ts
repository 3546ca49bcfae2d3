import type { PodRoster } from './pod-roster.js';

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

export function poolFigures(roster: PodRoster, rest: Pick<PoolFigures, 'waiting' | 'creations' | 'conflicts' | 'problem'>): PoolFigures {
  const { creating, starting, free, ours, taken, ending } = roster.counts();
  return { free, starting: creating + starting, ours, taken, ending, ...rest };
}
