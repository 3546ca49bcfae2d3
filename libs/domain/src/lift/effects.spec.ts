import type { ShowSide } from '@etude/contracts/memory';
import { expect, it } from 'vitest';
import { addSides, isHarmful, NO_SHOWS, reasonToArchive, successEffect, tokenEffect } from './effects.js';

const side = (right: number, n: number): ShowSide => ({ ...NO_SHOWS, n, right });
const tokensOf = (...tokens: number[]): ShowSide =>
  tokens.map((one) => ({ n: 1, right: 0, tokens: one, tokensSquared: one * one })).reduce(addSides, NO_SHOWS);
const twice = (...tokens: number[]) => tokensOf(...tokens, ...tokens);

// Newcombe 1998, table II, method 10: (a), (b), (c), (e), (h).
it.each([
  [side(56, 70), side(48, 80), 0.0524, 0.3339],
  [side(9, 10), side(3, 10), 0.1705, 0.809],
  [side(6, 7), side(2, 7), 0.0582, 0.8062],
  [side(5, 56), side(0, 29), -0.0381, 0.1926],
  [side(10, 10), side(0, 10), 0.6075, 1],
])('gives the published interval for a difference of shares', (shown, withheld, low, high) => {
  const effect = successEffect({ shown, withheld }, 1.959_963_984_5)!;
  expect(effect.low).toBeCloseTo(low, 4);
  expect(effect.high).toBeCloseTo(high, 4);
});

it('gives the interval of Welch for a difference of means', () => {
  const effect = tokenEffect({ shown: twice(27, 29, 30, 31, 33), withheld: twice(20, 20, 30, 50, 40) })!;
  expect(effect).toMatchObject({ estimate: -2 });
  // Means 30 and 32; squared standard errors 4/9 and 136/9; 9.53 degrees of freedom, with the quantile 2.243.
  expect((effect.high - effect.estimate) / (2.243 * Math.sqrt(140 / 9))).toBeCloseTo(1, 2);
  expect(tokenEffect({ shown: tokensOf(5, 5), withheld: tokensOf(7, 7) })).toEqual({ estimate: -2, low: -2, high: -2 });
  // Squared standard errors 1 and 1; 2 degrees of freedom.
  expect(tokenEffect({ shown: tokensOf(5, 7), withheld: tokensOf(4, 6) })!.high).toBeCloseTo(1 + 4.303 * Math.sqrt(2), 6);
});

it('tells nothing from one side alone', () => {
  expect(successEffect({ shown: side(3, 9), withheld: NO_SHOWS })).toBeNull();
  expect(tokenEffect({ shown: tokensOf(1, 2), withheld: tokensOf(1) })).toBeNull();
});

it('gives a reason to archive a harmful item after 300 rollouts, never before', () => {
  expect(isHarmful({ shown: side(0, 9), withheld: side(9, 9) })).toBe(false);
  expect(reasonToArchive({ shown: side(75, 150), withheld: side(104, 149) })).toBeNull();
  expect(reasonToArchive({ shown: side(75, 150), withheld: side(105, 150) })).toMatch(
    /over 300 rollouts .* was -0\.20 \(95% interval -0\.3/,
  );
  expect(reasonToArchive({ shown: side(200, 285), withheld: side(10, 15) })).toBeNull();
});
