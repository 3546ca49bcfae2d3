import { expect, it } from 'vitest';
import { takeTurn } from './sentence-thread.js';

it('runs short queries before earlier imports, and lets imports take turns', () => {
  const calls = new Map(['A', 'B', 'C'].map((name, id) => [id, { name, texts: ['text', 'text'] }]));
  const order = (count: number) =>
    Array.from({ length: count }, () => {
      const [id, { name, texts }] = takeTurn(calls) ?? [-1, { name: '-', texts: [] }];
      if (texts.length === 1) calls.delete(id);
      return name;
    }).join('');
  expect(order(4)).toBe('ABCA');
  calls.set(7, { name: 'q', texts: ['a question'] });
  calls.set(8, { name: 'long', texts: ['word '.repeat(1_000)] });
  expect(order(5)).toBe('qBCAlong');
  calls.clear();
  expect(order(1)).toBe('-');
});
