import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isDeeperThan } from './json-depth.js';

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

it('tells how deep any JSON is nested, whatever its texts hold', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const json = JSON.stringify(value);
      const depth = depthOf(value);
      expect(isDeeperThan(json, depth)).toBe(false);
      expect(isDeeperThan(json, depth - 1)).toBe(depth > 0);
    }),
  );
});

it('takes what is in quotes for text, and ends with what does not end', () => {
  expect(isDeeperThan('"[[[[\\"[[["', 0)).toBe(false);
  expect(isDeeperThan('"[[[[\\', 0)).toBe(false);
  expect(isDeeperThan('['.repeat(1_000_000), 100)).toBe(true);
});
