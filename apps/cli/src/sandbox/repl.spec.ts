import { describe, expect, it } from 'vitest';
import { CellReader } from './repl.js';

function cellsOf(...lines: string[]): string[] {
  const reader = new CellReader();
  return lines.flatMap((line) => reader.take(line) ?? []);
}

describe('cells of a loop', () => {
  it('are single lines', () => {
    expect(cellsOf('a = 1', '', 'a + 1')).toEqual(['a = 1', 'a + 1']);
  });

  it('are blocks up to an empty line', () => {
    expect(cellsOf('def f(x):  # doubles', '  return 2 * x', '', 'f(2)')).toEqual(['def f(x):  # doubles\n  return 2 * x\n', 'f(2)']);
  });

  it('wait for the block under a decorator', () => {
    expect(cellsOf('@cache', 'def f(): return 1', '')).toEqual(['@cache\ndef f(): return 1\n']);
  });
});
