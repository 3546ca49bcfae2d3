import { describe, expect, it } from 'vitest';
import { CallTurns, isUrgent } from './sentence-thread.js';

/** Names of calls in the order of their turns. Urgent ones are done with one turn, as they are in the thread. */
function order(turns: CallTurns<string>, count: number): string {
  return Array.from({ length: count }, () => {
    const turn = turns.next();
    if (turn === undefined) return '-';
    if (turn[1] === turn[1].toLowerCase()) turns.remove(turn[0]);
    return turn[1];
  }).join('');
}

describe('CallTurns', () => {
  it('lets a question go before imports that came earlier', () => {
    const turns = new CallTurns<string>();
    for (const [id, name] of ['A', 'B', 'C'].entries()) turns.add(id, name, false);
    expect(order(turns, 4)).toBe('ABCA');
    turns.add(7, 'q', true);
    turns.add(8, 'r', true);
    expect(order(turns, 5)).toBe('qrBCA');
  });

  it('lets imports go on while questions come without end', () => {
    const turns = new CallTurns<string>();
    for (const [id, name] of ['A', 'B'].entries()) turns.add(id, name, false);
    for (let id = 10; id < 40; id += 1) turns.add(id, 'q', true);
    expect(order(turns, 20)).toBe('qqqqqqqqAqqqqqqqqBqq');
  });

  it('gives no turn to what was given up', () => {
    const turns = new CallTurns<string>();
    turns.add(1, 'A', false);
    turns.add(2, 'q', true);
    turns.remove(1);
    turns.remove(2);
    expect(order(turns, 2)).toBe('--');
  });
});

describe('isUrgent', () => {
  it('holds for one short text', () => {
    expect([['a question'], [], ['one', 'two'], ['word '.repeat(1_000)]].map(isUrgent)).toEqual([true, false, false, false]);
  });
});
