import { describe, expect, it } from 'vitest';
import { calibration, countRight, fitCalibration, judged, type ScoredPair } from './calibration.js';

const scored = (same: ScoredPair['same'], ...cosines: number[]): ScoredPair[] => cosines.map((cosine) => ({ same, cosine }));
const PAIRS = [...scored('no', 0.1, 0.2, 0.4), ...scored('task', 0.5, 0.6, 0.8), ...scored('words', 0.9, 0.95, 0.99)];
const UNRELATED = Array.from({ length: 101 }, (_, i) => i / 500);

describe('fitCalibration', () => {
  it('cuts in the middle of the gaps between kinds', () => {
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

  it('is not moved by how many pairs of a kind there are', () => {
    const many = [...PAIRS, ...Array.from({ length: 500 }, () => scored('no', 0.15)).flat()];
    expect(fitCalibration(many, UNRELATED)?.sameTask).toBeCloseTo(0.45, 9);
  });

  it('keeps its anchors rising where kinds overlap', () => {
    const mixed = [...scored('no', 0.6, 0.7), ...scored('task', 0.65, 0.75), ...scored('words', 0.6, 0.7)];
    const anchors = fitCalibration(mixed, [0.9, 0.95]);
    expect(anchors && anchors.unrelated < anchors.sameTask && anchors.sameTask < anchors.sameWords).toBe(true);
  });

  it('fits nothing without pairs of every kind, or from a model that knows no difference', () => {
    expect(fitCalibration(scored('no', 0.1), UNRELATED)).toBeNull();
    expect(fitCalibration(PAIRS, [])).toBeNull();
    expect(fitCalibration([...scored('no', 0), ...scored('task', 0), ...scored('words', 0)], [0])).toBeNull();
  });

  it('reads 0.7 as the same and 0.9 as the same words', () => {
    expect([0.69, 0.7, 0.89, 0.9].map(judged)).toEqual(['no', 'task', 'task', 'words']);
  });
});
