import { create } from '@bufbuild/protobuf';
import { SkillSchema, SkillScope } from '@etude/contracts/gen/etude/v1/skills_pb';
import { describe, expect, it } from 'vitest';
import { argumentsOf } from './skills.command.js';
import { docstringOf, nameOfFile, newDraft, nextDraft } from './write-skills.js';

const CODE = 'def double(n: int) -> int:\n    """Doubles a number.\n\n    Any number.\n    """\n    return n * 2\n';

describe('a new skill', () => {
  it('takes name and description from the file unless flags give them', () => {
    const found = { name: 'double', description: 'Doubles a number.', agent: 'default', kind: 'function', code: CODE };
    expect(newDraft('lib/double.py', CODE, {})).toMatchObject(found);
    const given = { name: 'twice', description: 'Twice.', agent: 'solver', kind: 'snippet', isProgram: true };
    expect(newDraft('double.py', CODE, given)).toEqual({ ...given, code: CODE });
  });

  it('needs a name for stdin, and a description for code without a docstring', () => {
    expect(() => newDraft('-', CODE, {})).toThrow('has no name');
    expect(() => newDraft('a.py', 'print(1)', {})).toThrow('has no docstring');
  });

  it.each([
    ['parse_csv.py', 'parse_csv'],
    ['/a/b/Parse-CSV.py', 'parse_csv'],
    ['2nd try.py', 'nd_try'],
    ['.py', ''],
  ])('is named after %s', (path, name) => {
    expect(nameOfFile(path)).toBe(name);
  });

  it('is described by the first paragraph of its docstring, as one line', () => {
    expect(docstringOf("'''Reads a table\nof numbers.\n\nMore.'''")).toBe('Reads a table of numbers.');
    expect(docstringOf('x = 1')).toBe('');
  });
});

describe('the next version', () => {
  const called = { agent: 'solver', kind: 'function', entryPoint: 'double' };
  const before = { ...called, description: 'Doubles.', tags: ['math'], category: 'math.easy' };
  const skill = create(SkillSchema, { name: 'skills/double', version: 3, ...before });

  it('keeps fields that are not given, and always keeps the owner', () => {
    const tests = [{ test: { case: 'python' as const, value: { setup: '', tests: 'assert double(1) == 2' } } }];
    expect(nextDraft(skill, CODE, {}, tests)).toMatchObject({ name: 'double', isProgram: false, code: CODE, tests, ...before });
    const changed = { ...before, name: 'double', description: 'Twice.' };
    expect(nextDraft(skill, CODE, { description: 'Twice.', agent: 'other', name: 'other' })).toMatchObject(changed);
    expect(nextDraft(skill, CODE, { isProgram: true })).toMatchObject({ isProgram: true, entryPoint: '' });
  });

  it.each([
    ['@tenant', '', SkillScope.TENANT, ''],
    ['@user', 'ann', SkillScope.USER, ''],
    ['@global', '', SkillScope.GLOBAL, ''],
    ['solver', 'ann', SkillScope.AGENT, 'solver'],
  ])('keeps the readers of a skill of %s', (agent, user, scope, owner) => {
    const given = { scope: SkillScope.AGENT, user: 'bob' };
    expect(nextDraft({ ...skill, agent, user, scope }, CODE, given)).toMatchObject({ agent: owner, user, scope });
  });
});

describe('arguments of a skill', () => {
  it('are read as JSON if possible, else as text', () => {
    const pairs = ['n=2', 'text=a, b', 'list=[1,"a"]', 'none=null', 'empty=', 'eq=a=b', 'quoted="2"'];
    const values = { n: 2, text: 'a, b', list: [1, 'a'], none: null, empty: '', eq: 'a=b', quoted: '2' };
    expect(argumentsOf(pairs, undefined)).toEqual(values);
    expect(argumentsOf([], '{"n": {"a": 1}}')).toEqual({ n: { a: 1 } });
  });

  it.each([
    ['a value without a name', ['2'], undefined, /is not NAME=VALUE/],
    ['both ways at once', ['n=1'], '{}', /not both/],
    ['JSON that is no object', [], '[1]', /is not a JSON object/],
    ['text that is no JSON', [], '{', /is not JSON/],
    ['a number that would change on the way', ['n=12345678901234567890'], undefined, /12345678901234567890/],
  ])('are not %s', (_what, pairs, json, message) => {
    expect(() => argumentsOf(pairs, json)).toThrow(message);
  });
});
