import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Json, parseExactJson } from './json.js';

describe('the schema of JSON values', () => {
  it.each(['{"__proto__":1,"a":[{"__proto__":{"b":null}}]}', '[]', 'null', '1.5', '"a"', '{"constructor":true}'])(
    'keeps every key of %s',
    (text) => {
      expect(JSON.stringify(z.strictObject({ value: Json }).parse({ value: JSON.parse(text) as unknown }).value)).toBe(text);
    },
  );

  it.each([[undefined], [Number.NaN], [Infinity], [() => 1], [{ a: [1n] }], [Symbol.iterator]])('refuses %s', (value) => {
    expect(Json.safeParse(value).success).toBe(false);
  });

  it('accepts a value at any depth', () => {
    const deep = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)) as unknown;
    expect(Json.safeParse(deep).success).toBe(true);
  });
});

const nested = (depth: number) => `${'['.repeat(depth)}0.1234567890123456789${']'.repeat(depth)}`;

describe('parsing JSON without changes', () => {
  it.each([
    '9007199254740992',
    '-9007199254740991',
    '100000000000000000000',
    '1e300',
    '0.1234567890123456789',
    '"9007199254740993"',
    '"\\ud83d\\ude00"',
    '"\\\\ud800 \\"9007199254740993\\\\"',
    '-100000000000000000000',
    '1.2345678901234567e100',
    '1e-400',
  ])('accepts %s', (text) => {
    expect(parseExactJson(`{"n":[${text}]}`)).toEqual({ n: [JSON.parse(text)] });
  });

  it.each([
    ['{"a":{"n":9007199254740993}}', /"n": 9007199254740993 is beyond the numbers that are kept exactly; send it as a text/],
    ['[-9007199254740993]', /-9007199254740993 is beyond/],
    ['{"n":1e400}', /"n": 1e400 is beyond/],
    [`{"n":${'9'.repeat(400)}}`, /"n": 9{40} is beyond/],
    ['{"t":"a\\ud800"}', /"t": a text has half of a surrogate pair/],
    ['{"\\udc00":1}', /half of a surrogate pair/],
  ])('refuses %.30s', (text, message) => {
    expect(() => parseExactJson(text)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) }) as Error,
    );
  });

  it('refuses more than 100 nested levels', () => {
    expect(parseExactJson(nested(100))).toHaveLength(1);
    for (const depth of [101, 100_000]) expect(() => parseExactJson(nested(depth))).toThrow('more than 100 nested levels');
  });

  it('refuses a text that is not JSON', () => {
    expect(() => parseExactJson('{')).toThrow(SyntaxError);
  });
});
