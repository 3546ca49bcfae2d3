import { expect, it } from 'vitest';
import { misspelledOf, nearestOf } from './call-arguments.js';

it('finds the name that was probably meant', () => {
  const known = ['parse_csv', 'sum_even', 'add'];
  expect(nearestOf('parse_cvs', known)).toBe('parse_csv');
  expect(nearestOf('fetch_page', known)).toBeNull();
});

it.each([
  ['parse_cvs', 'parse_csv'],
  ['parse_cs', 'parse_csv'],
  ['ad', 'add'],
  ['parse_json', null],
  ['pars_cvss', null],
  ['sub', null],
  ['parse_csv', null],
])('takes %s for a misspelled %s', (name, meant) => {
  expect(misspelledOf(name, ['parse_csv', 'sum_even', 'add'])).toBe(meant);
});
