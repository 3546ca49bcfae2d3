import { describe, expect, it } from 'vitest';
import { passAtK, sampleOf, type SampleResult, summarize } from './run-sample.js';

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

  it('adds up the counts of the samples', () => {
    const summary = summarize('r', results, 2, 1.5);
    expect(summary).toMatchObject({ problems: 2, attempts: 9, modelCalls: 26, inputTokens: 50, tokens: 64, errors: 1, seconds: 1.5 });
    expect(summary.verdicts).toEqual({ AC: 1, WA: 1, TLE: 1, NONE: 1 });
  });

  it('reports pass@k up to the number of samples', () => {
    const { passAt1, passAtK: shares } = summarize('r', results, 2, 0);
    expect(passAt1).toBeCloseTo(0.25, 10);
    expect(shares).toEqual({ 1: passAt1, 2: 0.5 });
  });
});

describe('passAtK', () => {
  // Of all ways to draw k of n samples, the share with at least one of the c right samples.
  it.each([
    [3, 1, 1, 1 / 3],
    [4, 2, 2, 5 / 6],
    [5, 2, 3, 9 / 10],
    [8, 3, 6, 1],
    [6, 0, 3, 0],
  ])('of %i samples with %i right ones and %i drawn is the exact share', (n, c, k, share) => {
    expect(passAtK(n, c, k)).toBeCloseTo(share, 10);
  });

  it('stays exact where the binomials would overflow', () => {
    expect(passAtK(2_000, 0, 1_000)).toBe(0);
    expect(passAtK(2_000, 1, 1_000)).toBeCloseTo(0.5, 10);
  });
});
