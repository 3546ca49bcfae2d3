import { expect, it } from 'vitest';
import { alikeInShape, sharedFunction } from './shared-shape.js';

const rent = (city: string, rate: string, from = '"""Rent."""', note = '') => ({
  entryPoint: `rent_in_${city}`,
  code: `from math import floor\n\n\ndef rent_in_${city}(rooms, days):${note}\n    ${from}\n    total = rooms * ${rate}  # per day\n\n    return [floor(total * days), '${city}']\n`,
});
const [oslo, rome] = [rent('oslo', '3'), rent('rome', '5', '"""In Rome."""', '  # dear')];
const other = { entryPoint: 'area', code: 'def area(a):\n    return a * a\n' };

it('groups codes that differ in literals, comments and docstrings only', () => {
  expect(alikeInShape([other, oslo, rome])).toEqual([[oslo, rome], [other]]);
  expect(alikeInShape([oslo, { ...rome, code: rome.code.replace(' * days', ' + days') }])).toHaveLength(2);
});

it('makes parameters of the differing literals, with the first as defaults', () => {
  const shared = sharedFunction([oslo, rome], 'rent_in');
  expect(shared?.code).toBe(
    oslo.code
      .replace('rent_in_oslo(rooms, days)', "rent_in(rooms, days, *, number=3, text='oslo')")
      .replace('rooms * 3', 'rooms * number')
      .replace("days), 'oslo'", 'days), text'),
  );
  expect(shared?.fixed).toEqual([{}, { number: 5, text: 'rome' }]);
});

const twice = (n: number) => ({ entryPoint: 'f', code: `def f(number):\n    return number * ${n} + ${n} + 1\n` });

it('gives equal pairs one parameter, and leaves taken names', () => {
  expect(sharedFunction([twice(2), twice(7)], 'f')?.code).toBe(
    'def f(number, *, number_2=2):\n    return number * number_2 + number_2 + 1\n',
  );
});

it.each([
  ['literals outside the function', 'RATE = $\n\n\ndef f(n):\n    return n * RATE\n', ['2', '3']],
  ['recursion', 'def f(n):\n    return 1 if n < $ else f(n - 1)\n', ['2', '3']],
  ['values that JSON can not hold', 'def f(n):\n    return f"{n}$"\n', ['a', 'b']],
  ['numbers whose type would be lost', 'def f(n):\n    return n * $\n', ['2.0', '3.5']],
  ['any keyword', 'def f(**n):\n    return $\n', ['2', '3']],
])('leaves %s to the model', (_what, code, literals) => {
  const members = literals.map((literal) => ({ entryPoint: 'f', code: code.replace('$', literal) }));
  expect(sharedFunction(members, 'g')).toBeNull();
});
