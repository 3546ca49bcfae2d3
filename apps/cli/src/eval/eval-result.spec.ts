import { describe, expect, it } from 'vitest';
import { passAtK, sampleOf, type SampleResult, summarize } from './eval-result.js';

const sample = (id: string, n: number, over: Partial<SampleResult>): SampleResult => ({
  ...sampleOf(id, n, null, ''),
  error: null,
  stopReason: 'solved',
  ...over,
});

describe('summarize', () => {
  const results = [
    sample('a', 1, { solved: true, verdict: 'AC', attempts: 1, modelCalls: 2, inputTokens: 10, outputTokens: 5 }),
    sample('a', 2, { solved: false, verdict: 'WA', attempts: 4, modelCalls: 12, inputTokens: 40, outputTokens: 9 }),
    sample('b', 1, { solved: false, verdict: 'TLE', attempts: 4, modelCalls: 12 }),
    sampleOf('b', 2, null, 'MODEL_UNAVAILABLE: gone'),
  ];

  it('counts what the samples say and nothing else', () => {
    const summary = summarize('r', results, 2, 1.5);
    expect(summary).toMatchObject({
      problems: 2,
      attempts: 9,
      modelCalls: 26,
      inputTokens: 50,
      outputTokens: 14,
      tokens: 64,
      errors: 1,
      seconds: 1.5,
    });
    expect(summary.verdicts).toEqual({ AC: 1, WA: 1, TLE: 1, NONE: 1 });
  });

  it('reports pass@k up to the number of samples', () => {
    const { passAt1, passAtK: shares } = summarize('r', results, 2, 0);
    expect(passAt1).toBeCloseTo(0.25, 10);
    expect(shares).toEqual({ 1: passAt1, 2: 0.5 });
  });
});

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

describe('passAtK', () => {
  it('equals counting every draw by hand', () => {
    for (let n = 1; n <= 8; n++) {
      for (let c = 0; c <= n; c++) for (let k = 1; k <= n; k++) expect(passAtK(n, c, k)).toBeCloseTo(byDrawing(n, c, k), 10);
    }
  });

  it('stays exact where the binomials would overflow', () => {
    expect(passAtK(2_000, 0, 1_000)).toBe(0);
    expect(passAtK(2_000, 1, 1_000)).toBeCloseTo(0.5, 10);
  });
});
