import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sameOutput, sameValue } from './compare.js';

describe('sameOutput', () => {
  it.each([
    ['whitespace', '1  2\n3\n', '1 2 3', true],
    ['whitespace', '1 23', '12 3', false],
    ['whitespace', '1.0', '1', false],
    ['exact', 'a b\r\n', 'a b', true],
    ['exact', 'a  b', 'a b', false],
    ['exact', 'a\n\n', 'a', false],
    ['numeric', 'x 1.0000001', 'x 1', true],
    ['numeric', '1.1', '1', false],
    ['numeric', 'nan inf -inf', 'NaN Infinity -Infinity', true],
    ['numeric', 'inf', '-inf', false],
    ['numeric', 'inf', '1e400', false],
    ['numeric', '1e400', '2e400', false],
    ['numeric', 'yes', 'no', false],
    ['numeric', '1 2', '1', false],
    ['numeric', 'True', '1', false],
  ] as const)('compares by %s: %j with %j', (comparison, actual, expected, same) => {
    expect(sameOutput(actual, expected, comparison, 1e-6)).toBe(same);
  });

  // A regular expression that backtracks from every digit would take hours.
  it('finishes on a long text of digits that is not a number', () => {
    expect(sameOutput(`${'1'.repeat(1_000_000)}x`, '5', 'numeric', 1e-6)).toBe(false);
  });

  it.each([0, Number.MIN_VALUE, 1e-9])('distinguishes long whole numbers if the tolerance is %d', (tolerance) => {
    expect(sameOutput('100000000000000000001', '100000000000000000000', 'numeric', tolerance)).toBe(false);
    expect(sameOutput('+7 7.0', '7 7', 'numeric', tolerance)).toBe(true);
  });
});

describe('sameValue', () => {
  it.each([
    [[1, [2, 3]], [1, [2, 3]], true],
    [1, 1.0, true],
    [true, 1, false],
    [1, true, false],
    [null, 0, false],
    ['1', 1, false],
    [0.1 + 0.2, 0.3, true],
    [10_000_000_001, 10_000_000_000, false],
    [{ $int: '9007199254740993' }, { $int: '9007199254740992' }, false],
    [{ $int: '100000000000000000000' }, 1e20, true],
    [{ $float: 'nan' }, { $float: 'nan' }, true],
    [{ $float: 'inf' }, { $float: '-inf' }, false],
    [{ $set: [1, 2, 3] }, { $set: [3, 2, 1] }, true],
    [{ $set: [1, 2, 3] }, [1, 2, 3], false],
    [{ $set: [0.30000000000000004, 1] }, { $set: [1, 0.3] }, true],
    [100_000_000_000_000_000_000, { $int: '100000000000000000001' }, false],
    [{ $int: '12345678901234567890' }, Number('12345678901234567890'), true],
    [1e22, { $int: '10000000000000000000001' }, false],
    [{ $set: [1, 2] }, [1, 1], false],
    [[1, 2], { $set: [1, 2] }, false],
    [{ a: 1, b: [2] }, { b: [2], a: 1 }, true],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [
      {
        $dict: [
          [1, 'x'],
          [2, 'y'],
        ],
      },
      { 1: 'x', 2: 'y' },
      true,
    ],
    [{ $dict: [[1, 'x']] }, { $dict: [[1, 'x']] }, true],
    [{ $dict: [[[1, 2], 'x']] }, { $dict: [[[1, 2], 'x']] }, true],
    [{ $bytes: 'AA==' }, { $bytes: 'AA==' }, true],
    [{ $dict: [null, 1, 'ab'] }, { a: 'b' }, false],
    [{ $repr: '<object>' }, '<object>', false],
    [undefined, null, true],
  ])('compares %j with %j', (actual, expected, same) => {
    expect(sameValue(actual, expected, 1e-9)).toBe(same);
  });

  it.each([1e-9, 0.5])('finds a whole number beyond the range of floats equal only to itself, with tolerance %d', (tolerance) => {
    const large = { $int: `1${'0'.repeat(375)}` };
    expect(sameValue(large, structuredClone(large), tolerance)).toBe(true);
    for (const other of [{ $float: 'inf' }, Infinity, 1e308, { $int: `2${'0'.repeat(375)}` }]) {
      expect(sameValue(other, large, tolerance)).toBe(false);
      expect(sameValue(large, other, tolerance)).toBe(false);
    }
  });

  it('applies a raised tolerance to whole numbers too', () => {
    expect(sameValue(101, 100, 0.02)).toBe(true);
  });

  it('finds every JSON value equal to itself and sets equal in any order', () => {
    fc.assert(fc.property(fc.jsonValue(), (value) => sameValue(value, structuredClone(value), 0)));
    fc.assert(
      fc.property(fc.uniqueArray(fc.oneof(fc.integer(), fc.string())), fc.integer(), (items, seed) => {
        const shuffled = items.toSorted((a, b) => (String(a) + seed).localeCompare(String(b) + seed));
        expect(sameValue({ $set: items }, { $set: shuffled }, 0)).toBe(true);
      }),
    );
  });

  it.each(['', 'infinity', '0', ' ', 'nan2'])('does not read %j under $float as a number', (text) => {
    for (const wanted of [0, null, { $float: 'nan' }, { $float: 'inf' }]) expect(sameValue({ $float: text }, wanted, 1e-9)).toBe(false);
  });
});
