import { describe, expect, it } from 'vitest';
import { argumentsOf, objectOf } from './use-skill.js';

describe('argumentsOf', () => {
  it('takes values as JSON where they are JSON, and as text else', () => {
    expect(argumentsOf(['n=2', 'text=a, b', 'list=[1,"a"]', 'none=null', 'empty=', 'eq=a=b', 'quoted="2"'], undefined)).toEqual({
      n: 2,
      text: 'a, b',
      list: [1, 'a'],
      none: null,
      empty: '',
      eq: 'a=b',
      quoted: '2',
    });
  });

  it('takes one JSON object', () => {
    expect(argumentsOf([], '{"n": {"a": 1}}')).toEqual({ n: { a: 1 } });
  });

  it('names what an argument looks like as the help does', () => {
    const hint = [expect.stringMatching(/^NAME=VALUE gives one argument/), expect.stringContaining('skills get SKILL')];
    expect(() => argumentsOf(['A B'], undefined)).toThrow(expect.objectContaining({ message: '"A B" is no argument', hint }));
  });

  it.each([
    ['what has no name', ['2'], undefined, /is no argument/],
    ['a name twice', ['n=1', 'n=2'], undefined, /given twice/],
    ['both ways at once', ['n=1'], '{}', /not both/],
    ['JSON that is no object', [], '[1]', /no JSON object/],
    ['text that is no JSON', [], '{', /no JSON object/],
    ['a number that would change on the way', ['n=12345678901234567890'], undefined, /too large/],
  ])('refuses %s', (_what, pairs, json, message) => {
    expect(() => argumentsOf(pairs, json)).toThrow(message);
  });
});

it('names the flag that is no JSON object', () => {
  expect(() => objectOf('[1]', '--example', [])).toThrow('--example is no JSON object');
});
