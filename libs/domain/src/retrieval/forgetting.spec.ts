import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { forgettingScore } from './fuse.js';

const DAY_MS = 86_400_000;
const remembered = fc.record({
  worth: fc.double({ min: 0, max: 1, noNaN: true }),
  ageMs: fc.double({ min: 0, max: 20_000 * DAY_MS, noNaN: true }),
  uses: fc.nat(1_000_000),
});

describe('forgettingScore', () => {
  it('is the worth of what is new, and half of it after 90 days', () => {
    expect(forgettingScore({ worth: 0.8, ageMs: 0, uses: 0 })).toBe(0.8);
    expect(forgettingScore({ worth: 0.8, ageMs: 90 * DAY_MS, uses: 0 })).toBeCloseTo(0.4, 12);
    expect(forgettingScore({ worth: 0.8, ageMs: 90 * DAY_MS, uses: 1 })).toBeCloseTo(0.8 * Math.SQRT1_2, 12);
    expect(forgettingScore({ worth: 0.8, ageMs: -5, uses: 0 })).toBe(0.8);
  });

  it('never leaves 0 to 1', () => {
    fc.assert(
      fc.property(remembered, (one) => {
        const score = forgettingScore(one);
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('falls with age, and rises with worth and use', () => {
    fc.assert(
      fc.property(remembered, remembered, (a, b) => {
        const [less, more] = [forgettingScore(a), forgettingScore({ ...a, worth: Math.max(a.worth, b.worth), uses: a.uses + b.uses })];
        expect(more).toBeGreaterThanOrEqual(less);
        expect(forgettingScore({ ...a, ageMs: a.ageMs + b.ageMs })).toBeLessThanOrEqual(less);
      }),
    );
  });
});
