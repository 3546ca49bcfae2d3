import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { areAnchors, calibration } from './calibration.js';

describe('calibration', () => {
  it('maps its three anchors to 0.3, 0.7 and 0.9', () => {
    const calibrate = calibration({ unrelated: 0.2, sameTask: 0.5, sameWords: 0.8 });
    const calibrated = [-1, 0, 0.1, 0.2, 0.5, 0.8, 1, 1.01, Number.NaN].map(calibrate);
    [0, 0, 0.15, 0.3, 0.7, 0.9, 1, 1, 0].forEach((wanted, i) => expect(calibrated[i]).toBeCloseTo(wanted, 9));
  });

  it('rises from 0 to 1 whatever its anchors', () => {
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

  it('takes no anchors that do not rise', () => {
    expect(areAnchors({ unrelated: 0.3, sameTask: 0.3, sameWords: 0.8 })).toBe(false);
    expect(areAnchors({ unrelated: 0.3, sameTask: 0.9, sameWords: 0.8 })).toBe(false);
  });
});
