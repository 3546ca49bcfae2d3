import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { CODE_BITS, codeDistanceOf, vectorCode } from './vector-code.js';

/** The same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

function differing(a: Uint8Array, b: Uint8Array): number {
  return a.reduce((sum, byte, i) => sum + (byte ^ (b[i] ?? 0)).toString(2).replaceAll('0', '').length, 0);
}

function unit(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}

/** A direction at an angle from the other, with as many numbers that are not zero. */
function turned(from: readonly number[], next: () => number, share: number): number[] {
  const aside = from.map((value) => (value === 0 ? 0 : next()));
  return from.map((value, i) => value * share + (aside[i] ?? 0) * (1 - share));
}

it('is the same for ever, since codes are stored', () => {
  const digests = [1, 8, 384, 1_536].map((dimension) => {
    const next = numbers(dimension);
    return createHash('sha256')
      .update(vectorCode(unit(Array.from({ length: dimension }, next))))
      .digest('hex')
      .slice(0, 16);
  });
  expect(digests).toEqual(['4b2ba4ea3aaff55b', 'be6d22efdf3995fa', '7c3eef196c6a07c1', 'b095de6f5f97700f']);
});

it('tells angles, of full vectors and of those with few numbers', () => {
  for (const used of [8, 384]) {
    const next = numbers(used);
    let beyond = 0;
    for (let i = 0; i < 500; i += 1) {
      const from = Array.from({ length: 384 }, (_, at) => (at % (384 / used) === 0 ? next() : 0));
      const [a, b] = [unit(from), unit(turned(from, next, (i % 50) / 50))];
      const cosine = a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
      const bits = differing(vectorCode(a), vectorCode(b));
      expect(Math.abs(bits - (CODE_BITS * Math.acos(Math.min(1, cosine))) / Math.PI)).toBeLessThan(80);
      if (bits > codeDistanceOf(cosine, 2)) beyond += 1;
    }
    expect(beyond / 500).toBeLessThan(0.03);
  }
});
