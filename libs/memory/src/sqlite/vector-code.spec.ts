import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { numbers } from '../../test/record-store-samples.js';
import { vectorCode } from './vector-code.js';

function unit(values: readonly number[]): Float32Array {
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}

it('computes the same codes in every version, because files contain them', () => {
  const digests = [3, 8, 384, 1_536].map((dimension) => {
    const next = numbers(dimension);
    return createHash('sha256')
      .update(vectorCode(unit(Array.from({ length: dimension }, next))))
      .digest('hex')
      .slice(0, 16);
  });
  expect(digests).toEqual(['03e4eb02bf593cad', 'be6d22efdf3995fa', '7c3eef196c6a07c1', 'b095de6f5f97700f']);
});
