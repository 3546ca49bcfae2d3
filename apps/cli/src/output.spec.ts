import { describe, expect, it } from 'vitest';
import { firstLine, Output, table } from './output.js';

function terminal(isTTY: boolean) {
  let text = '';
  return { isTTY, columns: 20, write: (more: string) => (text += more), text: () => text };
}

describe('Output', () => {
  it('keeps data on stdout and the rest on stderr', () => {
    const [out, err] = [terminal(false), terminal(false)];
    const output = new Output(out, err, false);
    output.data({ a: 1 }, 'one');
    output.note('by the way');
    expect([out.text(), err.text()]).toEqual(['one\n', 'by the way\n']);
  });

  it('prints one line of JSON per value', () => {
    const out = terminal(false);
    const output = new Output(out, terminal(false), true);
    output.data({ a: 'x\ny' }, 'one');
    output.data({ b: 2 }, 'two');
    expect(out.text()).toBe('{"a":"x\\ny"}\n{"b":2}\n');
  });

  it('shows a status to a terminal only, cut to its width', () => {
    const [live, plain] = [terminal(true), terminal(false)];
    for (const err of [live, plain]) new Output(terminal(false), err, false).status('0123456789012345678901234');
    expect(live.text()).toBe('0123456789012345678');
    expect(plain.text()).toBe('');
  });
});

describe('text', () => {
  it('lines up columns without trailing blanks', () => {
    expect(
      table([
        ['A', 'LONG'],
        ['bbb', 'c'],
        ['d', ''],
      ]),
    ).toBe('A    LONG\nbbb  c\nd');
  });

  it('keeps the first line only', () => {
    expect(firstLine('one\ntwo')).toBe('one');
    expect(firstLine('x'.repeat(9), 5)).toBe('xxxx…');
  });
});
