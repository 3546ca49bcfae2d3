import { describe, expect, it } from 'vitest';
import { LastingShortage } from './lasting-shortage.js';

/** What it says of pods missing at 0, 1, 2, ... ms. */
const told = (...missing: number[]) => {
  const shortage = new LastingShortage(4);
  return missing.map((count, atMs) => shortage.note(count, atMs));
};

describe('a lasting shortage', () => {
  it('is at the start all that is missing', () => {
    expect(told(5, 4, 4)).toEqual([5, 4, 4]);
  });

  it('is none of what is missing for a short time, however often', () => {
    expect(Math.max(...told(0, 2, 1, 3, 0, 4, 2, 1, 0, 5, 3, 0))).toBe(0);
  });

  it('is what was missing all the while', () => {
    expect(told(0, 2, 2, 2, 5, 3)).toEqual([0, 0, 0, 0, 0, 2]);
  });

  it('ends with what is replaced', () => {
    expect(told(4, 4, 4, 4, 4, 4, 0)).toEqual([4, 4, 4, 4, 4, 4, 0]);
  });
});
