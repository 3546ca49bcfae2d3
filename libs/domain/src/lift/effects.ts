import type { FoundItem, ItemShows, ShowSide, Skill } from '@etude/contracts/memory';
import { hash } from 'node:crypto';
import { idleOffersOf, usesOf } from '../skills/life/usage.js';

/** A difference "with the items minus without them", and its 95% interval. */
export interface Effect {
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
}

type Sides = Pick<ItemShows, 'shown' | 'withheld'>;

export const NO_SHOWS: ShowSide = { n: 0, right: 0, tokens: 0, tokensSquared: 0 };
/** Minimum number of rollouts on each side, with and without an item, before the effect of the item counts. */
const SIDE_MIN = 10;
/** Minimum number of rollouts, with or without an item, before the item can be archived as harmful. */
const ARCHIVE_AFTER = 300;
/** The 97.5% quantiles of Student's t with 1 to 8 degrees of freedom. */
const T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306];
/** The 97.5% quantile. Below 9, the degrees of freedom are rounded down. From 9 on, the value is right within 1%. */
const quantileOf = (freedom: number): number => (freedom < 9 ? T[Math.floor(Math.max(1, freedom)) - 1]! : 1.96 + 2.6 / freedom);
/** Replaces the normal quantile 1.96. Withholding follows the estimate, so with 1.96 intervals cover only 93% (`lift-simulation.spec.ts`). */
const SHARE_Z = 2.05;

export function addSides(a: ShowSide, b: ShowSide): ShowSide {
  const [n, right] = [a.n + b.n, a.right + b.right];
  return { n, right, tokens: a.tokens + b.tokens, tokensSquared: a.tokensSquared + b.tokensSquared };
}

/**
 * The effect on the share of first attempts that are right. null without rollouts on both sides.
 *
 * Newcombe 1998, "Interval estimation for the difference between independent proportions", method 10: both shares get Wilson's score
 * interval, which also holds for few rollouts and for shares near 0 and 1.
 * @param z quantile of the normal distribution
 */
export function successEffect({ shown, withheld }: Sides, z = SHARE_Z): Effect | null {
  if (shown.n === 0 || withheld.n === 0) return null;
  const [a, b] = [wilson(shown, z), wilson(withheld, z)];
  const estimate = a.share - b.share;
  return {
    estimate,
    low: estimate - Math.hypot(a.share - a.low, b.high - b.share),
    high: estimate + Math.hypot(a.high - a.share, b.share - b.low),
  };
}

/** Wilson's score interval (Wilson 1927). */
function wilson({ n, right }: ShowSide, z: number) {
  const share = right / n;
  const middle = share + z ** 2 / (2 * n);
  const half = z * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n * n));
  const scale = 1 + z ** 2 / n;
  return { share, low: (middle - half) / scale, high: (middle + half) / scale };
}

/** The effect on the tokens of a rollout, by Welch's t (Welch 1947). null without two rollouts on each side. */
export function tokenEffect({ shown, withheld }: Sides): Effect | null {
  if (shown.n < 2 || withheld.n < 2) return null;
  const [a, b] = [meanOf(shown), meanOf(withheld)];
  const estimate = a.mean - b.mean;
  const variance = a.variance + b.variance;
  const freedom = variance === 0 ? Infinity : variance ** 2 / (a.variance ** 2 / (shown.n - 1) + b.variance ** 2 / (withheld.n - 1));
  const half = quantileOf(freedom) * Math.sqrt(variance);
  return { estimate, low: estimate - half, high: estimate + half };
}

function meanOf({ n, tokens, tokensSquared }: ShowSide) {
  const mean = tokens / n;
  return { mean, variance: Math.max(0, tokensSquared - n * mean * mean) / (n - 1) / n };
}

export function isHarmful(sides: Sides): boolean {
  return hasEnough(sides) && (successEffect(sides)?.high ?? 0) < 0;
}

export const hasEnough = ({ shown, withheld }: Sides) => shown.n >= SIDE_MIN && withheld.n >= SIDE_MIN;

/** Why an item should be archived. null if it should stay. */
export function reasonToArchive(sides: Sides): string | null {
  const shows = sides.shown.n + sides.withheld.n;
  const effect = successEffect(sides);
  if (shows < ARCHIVE_AFTER || effect === null || !isHarmful(sides)) return null;
  const [estimate, low, high] = [effect.estimate, effect.low, effect.high].map((value) => value.toFixed(2));
  return `harmful: over ${shows} rollouts the effect on right first attempts was ${estimate} (95% interval ${low} to ${high})`;
}

/** The probability of withholding an item that seems to harm. At one half, it soon becomes known whether the item harms. */
const IN_DOUBT = 0.5;
/** Minimum numbers of rollouts with and without an item, before the item can seem to harm. */
const SHOWN_MIN = 10;
const WITHHELD_MIN = 3;
const DRAWS = 2 ** 32;

/** The key of an item, unique within a tenant. */
export function showKey({ owner: { agent, user }, kind, id }: Omit<FoundItem, 'layer'>): string {
  return JSON.stringify([agent, user, kind, id]);
}

/** Whether an item is withheld from a rollout. The draw depends only on rollout, item and probability, so a replay gives the same result. */
export function isWithheld(rolloutId: string, item: FoundItem, probability: number): boolean {
  return Number.parseInt(hash('sha256', `${rolloutId}\n${showKey(item)}`).slice(0, 8), 16) < probability * DRAWS;
}

/** The probability with which an item is withheld. An item whose estimated effect on success is below zero is withheld half of the time. */
export function probabilityOf(sides: Pick<ItemShows, 'shown' | 'withheld'> | null, standard: number): number {
  if (sides === null || sides.shown.n < SHOWN_MIN || sides.withheld.n < WITHHELD_MIN) return standard;
  return (successEffect(sides)?.estimate ?? 0) < 0 ? Math.max(standard, IN_DOUBT) : standard;
}

/** A skill's standing (0 to 1) says whether offers are worth while. This many offers without a use halve the standing of a never used skill. */
const HALVED_AFTER = 4;
/** Each doubling of a skill's uses adds this many times `HALVED_AFTER` to the number of offers that halve its standing. */
const USE_LASTS = 8;
/** A skill with a lower standing isn't offered any more. Search still finds it, and a use or a load brings it back. */
const STANDING_MIN = 0.25;
/** Share of the score that a skill loses at standing 0. Low worth can take the same share, and so can age. */
const STANDING_SHARE = 0.15;
/** Weight of the measured effect on right first attempts in the score. */
const LIFT_SHARE = 0.5;

type Offered = Pick<Skill, 'usage'>;

function standingOf(skill: Offered): number {
  const strength = 1 + USE_LASTS * Math.log2(1 + usesOf(skill));
  return 0.5 ** (idleOffersOf(skill) / (HALVED_AFTER * strength));
}

/** Whether the skill is still offered: its standing is high enough, or its measured effect is positive. */
export function keepsItsPlace(skill: Offered, shows: Sides | null): boolean {
  return standingOf(skill) >= STANDING_MIN || (shows !== null && (successEffect(shows)?.low ?? 0) > 0);
}

/** The score that ranks a memory for an offer. @param score its `fusedScore` @param skill null if the memory is not a skill */
export function offerScore(score: number, skill: Offered | null, shows: Sides | null): number {
  const used = skill === null ? 1 : 1 - STANDING_SHARE * (1 - standingOf(skill));
  const effect = shows !== null && hasEnough(shows) ? (successEffect(shows)?.estimate ?? 0) : 0;
  return score * used * (1 + LIFT_SHARE * effect);
}
