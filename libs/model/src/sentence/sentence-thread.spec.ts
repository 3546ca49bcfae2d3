import { expect, it } from 'vitest';
import { takeTurn } from './sentence-thread.js';

it('runs short queries before earlier imports, and lets imports take turns', () => {
  const calls = new Set(['A', 'B', 'C'].map((name) => ({ name, texts: ['text', 'text'] })));
  const order = (count: number) =>
    Array.from({ length: count }, () => {
      const turn = takeTurn(calls);
      if (turn?.texts.length === 1) calls.delete(turn);
      return turn?.name ?? '-';
    }).join('');
  expect(order(4)).toBe('ABCA');
  calls.add({ name: 'q', texts: ['a question'] });
  calls.add({ name: 'long', texts: ['word '.repeat(1_000)] });
  expect(order(5)).toBe('qBCAlong');
  calls.clear();
  expect(order(1)).toBe('-');
});
