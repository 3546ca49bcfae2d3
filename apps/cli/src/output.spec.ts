import { describe, expect, it } from 'vitest';
import { bars, Output } from './output.js';

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

  it('escapes control characters', () => {
    const [out, err, live] = [terminal(false), terminal(false), terminal(true)];
    const evil = 'a\u001b]0;x\u0007\tb\r\nc\u009b2J\u202etxt.exe\u0000';
    const shown = 'a\\x1b]0;x\\x07\tb\nc\\x9b2J\\u202etxt.exe\\x00';
    const output = new Output(out, err, false);
    output.data({}, evil);
    output.note(evil);
    expect([out.text(), err.text()]).toEqual([`${shown}\n`, `${shown}\n`]);
    new Output(out, live, false).status('\u001b[2J\nx');
    expect(live.text()).toBe('\\x1b[2J x');
  });

  it('escapes control characters in JSON without changing its meaning', () => {
    const out = terminal(false);
    const value = { name: 'a\u009b2J\u202e\u007f\u001b' };
    new Output(out, terminal(false), true).data(value, '');
    expect(out.text()).not.toMatch(/[\u007f-\u009f\u202e]/);
    expect(JSON.parse(out.text())).toEqual(value);
  });

  it('writes the output of code unchanged', () => {
    const out = terminal(false);
    new Output(out, terminal(false), false).stream('stdout', '\u001b[1mbold\u001b[0m\r');
    expect(out.text()).toBe('\u001b[1mbold\u001b[0m\r');
  });

  it('shows a status to a terminal only, cut to its width', () => {
    const [live, plain] = [terminal(true), terminal(false)];
    for (const err of [live, plain]) new Output(terminal(false), err, false).status('0123456789012345678901234');
    expect(live.text()).toBe('0123456789012345678');
    expect(plain.text()).toBe('');
  });
});

it('draws bars as long as their share of the largest', () => {
  const [first = '', second = ''] = bars([
    ['round 1', 200],
    ['round 2', 50],
  ]).split('\n');
  expect([first, second].map((line) => line.split('█').length - 1)).toEqual([40, 10]);
  expect(second).toMatch(/^round 2 {2}█+ 50$/);
});
