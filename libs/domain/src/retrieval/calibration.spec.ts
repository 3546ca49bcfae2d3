import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { areAnchors, calibration, countRight, fitCalibration, judged, type ScoredPair } from './calibration.js';

describe('calibration', () => {
  it('maps its three anchors to 0.3, 0.7 and 0.9', () => {
    const calibrate = calibration({ unrelated: 0.2, sameTask: 0.5, sameWords: 0.8 });
    const calibrated = [-1, 0, 0.1, 0.2, 0.5, 0.8, 1, 1.01, Number.NaN].map(calibrate);
    [0, 0, 0.15, 0.3, 0.7, 0.9, 1, 1, 0].forEach((wanted, i) => expect(calibrated[i]).toBeCloseTo(wanted, 9));
  });

  it('rises from 0 to 1 for all anchors', () => {
    const anchors = fc
      .uniqueArray(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 })
      .map((cosines) => cosines.toSorted((a, b) => a - b))
      .map(([unrelated = 0, sameTask = 0, sameWords = 0]) => ({ unrelated, sameTask, sameWords }));
    const cosine = fc.double({ min: -1, max: 1, noNaN: true });
    fc.assert(
      fc.property(anchors, cosine, cosine, (given, a, b) => {
        expect(areAnchors(given)).toBe(true);
        const calibrate = calibration(given);
        const [low, high] = [calibrate(Math.min(a, b)), calibrate(Math.max(a, b))];
        expect(low >= 0 && low <= high && high <= 1).toBe(true);
      }),
    );
  });

  it('refuses anchors that do not rise', () => {
    expect(areAnchors({ unrelated: 0.3, sameTask: 0.3, sameWords: 0.8 })).toBe(false);
    expect(areAnchors({ unrelated: 0.3, sameTask: 0.9, sameWords: 0.8 })).toBe(false);
  });
});

const scored = (same: ScoredPair['same'], ...cosines: number[]): ScoredPair[] => cosines.map((cosine) => ({ same, cosine }));
const PAIRS = [...scored('no', 0.1, 0.2, 0.4), ...scored('task', 0.5, 0.6, 0.8), ...scored('words', 0.9, 0.95, 0.99)];
const UNRELATED = Array.from({ length: 101 }, (_, i) => i / 500);

describe('fitCalibration', () => {
  it('sets anchors in the middle of the gaps between kinds', () => {
    const anchors = fitCalibration(PAIRS, UNRELATED);
    expect(anchors?.unrelated).toBeCloseTo(0.19, 9);
    expect(anchors?.sameTask).toBeCloseTo(0.45, 9);
    expect(anchors?.sameWords).toBeCloseTo(0.85, 9);
    expect(countRight(PAIRS, calibration(anchors ?? { unrelated: 0, sameTask: 0.1, sameWords: 0.2 }))).toEqual({
      pairs: 9,
      kinds: 9,
      sameness: 9,
    });
  });

  it('returns rising anchors if kinds overlap', () => {
    const mixed = [...scored('no', 0.6, 0.7), ...scored('task', 0.65, 0.75), ...scored('words', 0.6, 0.7)];
    const anchors = fitCalibration(mixed, [0.9, 0.95]);
    expect(anchors && anchors.unrelated < anchors.sameTask && anchors.sameTask < anchors.sameWords).toBe(true);
  });

  it('returns null without pairs of every kind, or without differences', () => {
    expect(fitCalibration(scored('no', 0.1), UNRELATED)).toBeNull();
    expect(fitCalibration(PAIRS, [])).toBeNull();
    expect(fitCalibration([...scored('no', 0), ...scored('task', 0), ...scored('words', 0)], [0])).toBeNull();
  });

  it('judges 0.7 as the same task and 0.9 as the same words', () => {
    expect([0.69, 0.7, 0.89, 0.9].map(judged)).toEqual(['no', 'task', 'task', 'words']);
  });
});
