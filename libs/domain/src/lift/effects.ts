import type { ItemShows, ShowSide } from '@etude/contracts/memory';

/** A difference "with the items minus without them", and its 95% interval. */
export interface Effect {
  readonly estimate: number;
  readonly low: number;
  readonly high: number;
}

type Sides = Pick<ItemShows, 'shown' | 'withheld'>;

export const NO_SHOWS: ShowSide = { n: 0, right: 0, tokens: 0, tokensSquared: 0 };
/** Rollouts on each side below which no effect of a single item is told. */
const SIDE_MIN = 10;
/** Shows and withholdings after which a harmful item is archived. */
const ARCHIVE_AFTER = 300;
/** The 97.5% quantile of the normal distribution. */
const Z = 1.959_963_984_540_054;
/** The same for shares, a little wider: with `Z` the lot, which follows the estimate, would leave 93% covered (`lift-simulation.spec.ts`). */
const SHARE_Z = 2.05;

export function addSides(a: ShowSide, b: ShowSide): ShowSide {
  const [n, right] = [a.n + b.n, a.right + b.right];
  return { n, right, tokens: a.tokens + b.tokens, tokensSquared: a.tokensSquared + b.tokensSquared };
}

/**
 * The effect on the share of first attempts that are right; null without rollouts on both sides.
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

/** Wilson 1927. */
function wilson({ n, right }: ShowSide, z: number) {
  const share = right / n;
  const middle = share + z ** 2 / (2 * n);
  const half = z * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n * n));
  const scale = 1 + z ** 2 / n;
  return { share, low: (middle - half) / scale, high: (middle + half) / scale };
}

/** The effect on the tokens of a rollout, by Welch's t (Welch 1947); null without two rollouts on both sides. */
export function tokenEffect({ shown, withheld }: Sides): Effect | null {
  if (shown.n < 2 || withheld.n < 2) return null;
  const [a, b] = [meanOf(shown), meanOf(withheld)];
  const estimate = a.mean - b.mean;
  const variance = a.variance + b.variance;
  const freedom = variance === 0 ? Infinity : variance ** 2 / (a.variance ** 2 / (shown.n - 1) + b.variance ** 2 / (withheld.n - 1));
  const half = studentQuantile(freedom) * Math.sqrt(variance);
  return { estimate, low: estimate - half, high: estimate + half };
}

/** The mean, and its variance. */
function meanOf({ n, tokens, tokensSquared }: ShowSide) {
  const mean = tokens / n;
  return { mean, variance: Math.max(0, tokensSquared - n * mean * mean) / (n - 1) / n };
}

/**
 * The 97.5% quantile of Student's t, by Abramowitz and Stegun 1964, 26.7.5. Below 3 degrees of freedom, where that is inexact, it is the exact
 * one of the whole number below.
 */
export function studentQuantile(freedom: number): number {
  if (freedom < 2) return 12.706;
  if (freedom < 3) return 4.303;
  const terms = [
    Z,
    (Z ** 3 + Z) / 4,
    (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / 96,
    (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / 384,
    (79 * Z ** 9 + 776 * Z ** 7 + 1482 * Z ** 5 - 1920 * Z ** 3 - 945 * Z) / 92_160,
  ];
  return terms.reduce((sum, term, power) => sum + term / freedom ** power, 0);
}

/** Whether the interval of the effect on success lies below zero. */
export function isHarmful(sides: Sides): boolean {
  return hasEnough(sides) && (successEffect(sides)?.high ?? 0) < 0;
}

export const hasEnough = ({ shown, withheld }: Sides) => shown.n >= SIDE_MIN && withheld.n >= SIDE_MIN;

/** Why an item is to be archived; null: it stays. */
export function reasonToArchive(sides: Sides): string | null {
  const shows = sides.shown.n + sides.withheld.n;
  const effect = successEffect(sides);
  if (shows < ARCHIVE_AFTER || effect === null || !isHarmful(sides)) return null;
  const [estimate, low, high] = [effect.estimate, effect.low, effect.high].map((value) => value.toFixed(2));
  return `harmful: over ${shows} rollouts the effect on right first attempts was ${estimate} (95% interval ${low} to ${high})`;
}
