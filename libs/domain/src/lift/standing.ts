import type { ItemShows, Skill } from '@etude/contracts/memory';
import { idleOffersOf, usesOf } from '../skills/life/usage.js';
import { hasEnough, successEffect } from './effects.js';

/** Offers in vain after which the standing of a skill that was never used has halved. */
const HALVED_AFTER = 4;
/** How much longer a skill lasts for each doubling of its uses. */
const USE_LASTS = 8;
/** Below this standing a skill isn't offered any more. Search finds it, and a use or a load brings it back. */
const STANDING_MIN = 0.25;
/** Share of the score that a skill without standing loses, as much as by age or lack of worth. */
const STANDING_SHARE = 0.15;
/** Share of a measured effect on right first attempts by which the score changes. */
const LIFT_SHARE = 0.5;

type Offered = Pick<Skill, 'usage' | 'executionCount'>;

/**
 * How much of an offer is left to a skill, 0 to 1: halved with every four offers in vain since its last use. Uses make it last longer, as
 * in `forgettingScore`: after one, nine times as long.
 */
export function standingOf(skill: Offered): number {
  const strength = 1 + USE_LASTS * Math.log2(1 + usesOf(skill));
  return 0.5 ** (idleOffersOf(skill) / (HALVED_AFTER * strength));
}

type Sides = Pick<ItemShows, 'shown' | 'withheld'> | null;

/** Whether the skill is still offered: not often enough in vain, or measured to help. */
export function keepsItsPlace(skill: Offered, shows: Sides): boolean {
  return standingOf(skill) >= STANDING_MIN || (shows !== null && (successEffect(shows)?.low ?? 0) > 0);
}

/**
 * The score by which a memory is offered: its relevance with importance and age (`fusedScore`), lowered by offers in vain, and changed by
 * its measured lift.
 *
 * @param skill null: another memory
 * @param shows its counters; null: there are none
 */
export function offerScore(score: number, skill: Offered | null, shows: Sides): number {
  const used = skill === null ? 1 : 1 - STANDING_SHARE * (1 - standingOf(skill));
  const effect = shows !== null && hasEnough(shows) ? (successEffect(shows)?.estimate ?? 0) : 0;
  return score * used * (1 + LIFT_SHARE * effect);
}
