import { describe, expect, it } from 'vitest';
import { escapedText, exactValue, noteOfPlainValue, plainValue } from './call-values.js';

const json = (text: string) => JSON.parse(text) as unknown;

it.each([
  ['a\ud800', 'a\\ud800'],
  ['\udc00\ud800', '\\udc00\\ud800'],
  ['😀\udfff', '😀\\udfff'],
  ['😀', '😀'],
  ['\\ud800', '\\ud800'],
])('escapes lone surrogates of %j', (text, escaped) => {
  expect(escapedText(text)).toBe(escaped);
  expect(escapedText(text).isWellFormed()).toBe(true);
});

describe('a value that code returned', () => {
  it('keeps every key and marks texts that are not Unicode', () => {
    expect(JSON.stringify(exactValue(json('{"__proto__":{"a":["\\ud800x",1]}}')))).toBe(
      '{"__proto__":{"a":[{"$repr":"\\"\\\\ud800x\\""},1]}}',
    );
    expect(exactValue(json('{"\\ud800":1,"a":2}'))).toEqual({
      $dict: [
        [{ $repr: '"\\ud800"' }, 1],
        ['a', 2],
      ],
    });
    const plain = json('{"a":[null,true,1.5,"😀"],"$int":"1"}');
    expect(exactValue(plain)).toEqual(plain);
  });

  it('is plain JSON with every key, with a note on changed values', () => {
    const value = json('{"__proto__":{"$int":"9007199254740993"},"b":[{"$float":"nan"},"\\ud800"],"\\udc00":{"$dict":[["$x","\\ud801"]]}}');
    expect(JSON.stringify(plainValue(value))).toBe(
      '{"__proto__":"9007199254740993","b":["nan","\\\\ud800"],"\\\\udc00":{"$x":"\\\\ud801"}}',
    );
    for (const changed of ['{"a":{"$int":"9007199254740993"}}', '[{"$float":"nan"}]', '"\\ud800"'])
      expect(noteOfPlainValue(json(changed))).toMatch(/^In the result whole numbers/);
    expect(noteOfPlainValue(json('{"a":[1,{"$set":["x"]}],"c":"\\\\ud"}'))).toBe('');
    expect(noteOfPlainValue(undefined)).toBe('');
  });
});
