import { assert, constant, integer, property, tuple } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { meanPassAtK, passAtK } from './pass-at-k.js';

const counts = integer({ min: 1, max: 60 }).chain((n) => tuple(constant(n), integer({ min: 0, max: n }), integer({ min: 1, max: n })));

/** The definition itself: of all ways to draw k of n samples, the share that holds a right one. */
function byDrawing(n: number, c: number, k: number): number {
  let draws = 0;
  let withRight = 0;
  for (let mask = 0; mask < 2 ** n; mask++) {
    const drawn = Array.from({ length: n }, (_, i) => (mask & (1 << i) ? i : -1)).filter((i) => i >= 0);
    if (drawn.length !== k) continue;
    draws++;
    if (drawn.some((i) => i < c)) withRight++;
  }
  return withRight / draws;
}

const isShare = ([n, c]: [number, number, number]) => Math.abs(passAtK(n, c, 1) - c / n) < 1e-10;

const grows = ([n, c, k]: [number, number, number]) => {
  const here = passAtK(n, c, k);
  return here >= 0 && here <= 1 && (k === 1 || here >= passAtK(n, c, k - 1) - 1e-12);
};

describe('passAtK', () => {
  it('is the share of right samples for k of 1', () => {
    expect(() => assert(property(counts, isShare))).not.toThrow();
  });

  it('equals counting every draw by hand', () => {
    for (let n = 1; n <= 8; n++) {
      for (let c = 0; c <= n; c++) for (let k = 1; k <= n; k++) expect(passAtK(n, c, k)).toBeCloseTo(byDrawing(n, c, k), 10);
    }
  });

  it('grows with k and stays between 0 and 1', () => {
    expect(() => assert(property(counts, grows))).not.toThrow();
  });

  it('stays exact where the binomials would overflow', () => {
    expect(passAtK(2_000, 0, 1_000)).toBe(0);
    expect(passAtK(2_000, 1, 1_000)).toBeCloseTo(0.5, 10);
  });

  it('refuses counts that make no sense', () => {
    expect(() => passAtK(2, 3, 1)).toThrow(RangeError);
    expect(() => passAtK(2, 1, 3)).toThrow(RangeError);
  });

  it('averages over problems', () => {
    expect(meanPassAtK([2, 0], 2, 1)).toBeCloseTo(0.5, 10);
    expect(meanPassAtK([], 1, 1)).toBe(0);
  });
});
