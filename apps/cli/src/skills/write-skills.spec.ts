import { create } from '@bufbuild/protobuf';
import { SkillSchema, SkillScope } from '@etude/contracts/gen/etude/v1/skills_pb';
import { describe, expect, it } from 'vitest';
import { docstringOf, nameOfFile, newDraft, nextDraft } from './write-skills.js';

const CODE = 'def double(n: int) -> int:\n    """Doubles a number.\n\n    Any number.\n    """\n    return n * 2\n';

describe('newDraft', () => {
  it('takes name and description from the file', () => {
    expect(newDraft('lib/double.py', CODE, {})).toMatchObject({
      name: 'double',
      description: 'Doubles a number.',
      agent: 'default',
      kind: 'function',
      code: CODE,
    });
  });

  it('takes what is said before what is found', () => {
    const options = { name: 'twice', description: 'Twice.', agent: 'solver', tag: ['math'], program: true, scope: 'tenant' as const };
    expect(newDraft('double.py', CODE, options)).toMatchObject({
      name: 'twice',
      description: 'Twice.',
      agent: 'solver',
      tags: ['math'],
      isProgram: true,
      scope: SkillScope.TENANT,
    });
  });

  it('asks for a name where stdin has none, and for a description where the code has none', () => {
    expect(() => newDraft('-', CODE, {})).toThrow('needs a name');
    expect(() => newDraft('a.py', 'print(1)', {})).toThrow('has no docstring');
  });
});

describe('nextDraft', () => {
  const skill = create(SkillSchema, {
    name: 'skills/double',
    agent: 'solver',
    version: 3,
    kind: 'function',
    entryPoint: 'double',
    description: 'Doubles.',
    tags: ['math'],
    category: 'math.easy',
  });

  it('leaves what is not given as it was', () => {
    const tests = [{ test: { case: 'python' as const, value: { setup: '', tests: 'assert double(1) == 2' } } }];
    expect(nextDraft(skill, CODE, {}, tests)).toMatchObject({
      name: 'double',
      agent: 'solver',
      entryPoint: 'double',
      isProgram: false,
      description: 'Doubles.',
      tags: ['math'],
      category: 'math.easy',
      code: CODE,
      tests,
    });
  });

  it('changes what is given, and never whose it is', () => {
    expect(nextDraft(skill, CODE, { description: 'Twice.', agent: 'other', name: 'other' })).toMatchObject({
      name: 'double',
      agent: 'solver',
      description: 'Twice.',
    });
  });

  it.each([
    ['@tenant', '', SkillScope.TENANT],
    ['@user', 'ann', SkillScope.USER],
    ['@global', '', SkillScope.GLOBAL],
  ])('keeps the readers of what belongs to %s, which is no agent', (agent, user, scope) => {
    expect(nextDraft({ ...skill, agent, user, scope }, CODE, { scope: 'agent', user: 'bob' })).toMatchObject({ agent: '', user, scope });
  });

  it('keeps the user of what an agent learned for one', () => {
    expect(nextDraft({ ...skill, user: 'ann', scope: SkillScope.AGENT }, CODE, {})).toMatchObject({ agent: 'solver', user: 'ann' });
  });

  it('describes it as the new docstring does, where the old one did', () => {
    const code = 'def double(n):\n    """Twice a number."""\n    return 2 * n\n';
    const described = { ...skill, code: CODE, description: 'Doubles a number.' };
    expect(nextDraft(described, code, {}).description).toBe('Twice a number.');
    expect(nextDraft(described, 'double = 1\n', {}).description).toBe('Doubles a number.');
    expect(nextDraft({ ...described, description: 'Mine.' }, code, {}).description).toBe('Mine.');
    expect(nextDraft(described, code, { description: 'Given.' }).description).toBe('Given.');
  });
});

it.each([
  ['parse_csv.py', 'parse_csv'],
  ['/a/b/Parse-CSV.py', 'parse_csv'],
  ['2nd try.py', 'nd_try'],
  ['.py', ''],
])('names a skill after %s', (path, name) => {
  expect(nameOfFile(path)).toBe(name);
});

it('reads the first paragraph of a docstring as one line', () => {
  expect(docstringOf("'''Reads a table\nof numbers.\n\nMore.'''")).toBe('Reads a table of numbers.');
  expect(docstringOf('x = 1')).toBe('');
});

it.each([
  ['def f(x):\n    "Gives back what it got."\n    return x\n'],
  ["def f(x):\n    'Gives back what it got.'  # all of it\n    return x\n"],
  ['def f(x):\n    r"Gives back what it got."\n'],
  ["def f(x):\n    R'''Gives back what it got.'''\n"],
  ['# Mine.\n\n"Gives back what it got."\nimport re\n'],
  ['def f(\n    x,\n) -> str:\n\n    "Gives back what it got."\r\n'],
  ['"Gives back what it got."\ndef f(x):\n    """More."""\n'],
  ['"""Gives back what it got."""\ndef f(x):\n    "More."\n'],
])('reads the docstring of %j', (code) => {
  expect(docstringOf(code)).toBe('Gives back what it got.');
});

it.each([
  ['X = [\n    "a",\n    "b"\n]\n'],
  ['def f(x):\n    "a".join(x)\n'],
  ['def f(x):\n    return {\n        "a"\n    }\n'],
  ['def f(x):\n    ""\n'],
])('takes no string of %j for a docstring', (code) => {
  expect(docstringOf(code)).toBe('');
});
