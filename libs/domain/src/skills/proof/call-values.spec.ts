import type { EtudeError } from '@etude/contracts/errors';
import type { Json } from '@etude/contracts/json';
import type { SkillContract } from '@etude/contracts/skill-proof';
import { describe, expect, it } from 'vitest';
import { contractOf } from '../../../test/bundle-fixture.js';
import { noteOfPlainValue, plainValue, validateArguments, validUnicode } from './call-values.js';

const properties: Record<string, object> = {
  text: { type: 'string', description: 'What to read.' },
  separator: { type: 'string', default: ',' },
  limit: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null },
  mode: { enum: ['fast', 'exact'], default: 'fast' },
  ratio: { type: 'number', default: 1 },
  rows: { type: 'array', items: { type: 'array', items: { type: 'string' } }, default: [] },
  point: { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'integer' }], minItems: 2, maxItems: 2, default: [0, 0] },
  anything: { default: null },
};
const { parameters, ...described } = contractOf('parse', properties);
const contract: SkillContract = {
  ...described,
  parameters: parameters.map((parameter) => (parameter.name === 'text' ? { ...parameter, type: 'str' } : parameter)),
  signature: "def parse(text: str, separator: str = ',')",
};
const skill = { name: 'parse', kind: 'function' as const, entryPoint: 'parse', contract };

function refused(given: Record<string, unknown>, what: Parameters<typeof validateArguments>[0] = skill) {
  try {
    validateArguments(what, given);
    return { code: 'none', message: '', fields: [] };
  } catch (error) {
    const { code, message, details } = error as EtudeError;
    return { code, message, fields: (details.violations ?? []).map(({ field }) => field) };
  }
}

describe('validateArguments', () => {
  it('names all wrong arguments at once', () => {
    const wrong = refused({ separator: 1, limit: 'x', mode: 'slow', rows: [['a'], [1]], point: [1] });
    expect(wrong.code).toBe('INVALID_ARGUMENT');
    expect(wrong.fields).toEqual(
      expect.arrayContaining(['parameters.text', 'parameters.separator', 'parameters.limit', 'parameters.mode', 'parameters.rows.1.0']),
    );
    expect(wrong.message).toContain('parameters.text is missing (str)');
    expect(wrong.message).toContain('parameters.separator is wrong: expected string, received number');
    expect(wrong.message).toContain('def parse(text: str');
  });

  it('refuses unknown arguments and names the known ones', () => {
    const { message, fields } = refused({ text: 'a', seperator: ';' });
    expect(fields).toEqual(['parameters.seperator']);
    expect(message).toContain('known are text, separator');
  });

  it('says why a snippet or a procedure can’t be called', () => {
    expect(refused({}, { ...skill, kind: 'snippet' })).toMatchObject({
      code: 'FAILED_PRECONDITION',
      message: expect.stringContaining('whose code was never run') as string,
    });
    expect(refused({}, { ...skill, kind: 'procedure' }).message).toContain('in words');
    expect(refused({}, { ...skill, contract: undefined }).message).toContain('verify it again');
  });
});

const taking = (inputs: Record<string, object>) => ({ ...skill, contract: contractOf('parse', inputs) });
const json = (text: string) => JSON.parse(text) as Record<string, Json>;

describe('names of arguments', () => {
  it('may be those of JavaScript objects', () => {
    const named = taking({ constructor: {}, toString: { type: 'string', default: 'x' }, valueOf: { default: 0 } });
    expect(validateArguments(named, json('{"constructor": 1}'))).toEqual({ constructor: 1 });
    expect(refused({}, named)).toMatchObject({ code: 'INVALID_ARGUMENT', fields: ['parameters.constructor'] });
  });

  it('stay unchanged, with their values', () => {
    const dict = taking({ counts: { type: 'object', additionalProperties: { type: 'integer' } }, rest: {} });
    const text = '{"counts":{"__proto__":2,"constructor":1},"rest":{"__proto__":{"a":1}}}';
    expect(JSON.stringify(validateArguments(dict, json(text)))).toBe(text);
  });
});

describe('a value that code returned', () => {
  it.each([
    ['{"__proto__":{"\\udc00":["\\ud800x",1]}}', '{"__proto__":{"\\\\udc00":["\\\\ud800x",1]}}'],
    ['["\\\\\\ud800","\\\\\\\\ud800","\\ud83d\\ude00"]', '["\\\\\\\\ud800","\\\\\\\\ud800","😀"]'],
    ['{"a":[null,true,1.5],"$int":"1"}', '{"a":[null,true,1.5],"$int":"1"}'],
  ])('keeps every key and escapes lone surrogates: %s', (given, expected) => {
    expect(JSON.stringify(validUnicode(json(given)))).toBe(expected);
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
