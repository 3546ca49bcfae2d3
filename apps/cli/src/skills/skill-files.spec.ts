import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, toJson } from '@bufbuild/protobuf';
import { SkillSchema, SkillStatus, SkillTestCaseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { EXIT } from '../errors.js';
import { handedInExit } from './skill-lines.js';
import { readTests, withCalls } from './write-skills.js';
import { importedText, readSkill, writeSkill } from './transfer-skills.js';

let dir: string;
beforeEach(() => void (dir = testFolder()));

const bytes = (text: string) => new TextEncoder().encode(text);
const FILES = [
  { path: 'SKILL.md', data: bytes('---\nname: double\n---\n') },
  { path: 'scripts/größe.py', data: bytes('print(1)') },
];

describe('the folder of a skill', () => {
  it('is read with the same files that were written', () => {
    writeSkill(join(dir, 'out'), FILES, false);
    const [format, files] = readSkill(join(dir, 'out'));
    expect(format).toBe('folder');
    expect(files.map(({ path, data }) => ({ path, data: new Uint8Array(data) }))).toEqual(FILES);
  });

  it('cannot be a device, which may never end', () => {
    expect(() => readSkill('/dev/zero')).toThrow('/dev/zero is neither a file nor a pipe');
  });

  it.each(['../out.py', '/etc/passwd', 'a/../../b', ''])('refuses the path %j', (path) => {
    expect(() => writeSkill(join(dir, 'out'), [{ path, data: bytes('x') }], false)).toThrow('unsafe path');
    expect(existsSync(join(dir, 'out.py'))).toBe(false);
  });

  it('overwrites files only with --force, and follows no link', () => {
    mkdirSync(join(dir, 'out'));
    writeFileSync(join(dir, 'mine'), 'mine');
    symlinkSync(join(dir, 'mine'), join(dir, 'out', 'SKILL.md'));
    expect(() => writeSkill(join(dir, 'out'), FILES, false)).toThrow('already exists');
    writeSkill(join(dir, 'out'), FILES, true);
    expect(readFileSync(join(dir, 'mine'), 'utf8')).toBe('mine');
    expect(readFileSync(join(dir, 'out', 'SKILL.md'), 'utf8')).toContain('double');
  });

  it('is read without the targets of its links', () => {
    writeFileSync(join(dir, 'SKILL.md'), 'x');
    symlinkSync('/etc/passwd', join(dir, 'secret'));
    expect(readSkill(dir)[1].map(({ path }) => path)).toEqual(['SKILL.md']);
  });

  it('names a path that is not a skill', () => {
    writeFileSync(join(dir, 'skill.txt'), 'x');
    expect(() => readSkill(join(dir, 'skill.txt'))).toThrow('neither a folder');
    expect(() => readSkill(join(dir, 'nothing.zip'))).toThrow('there is no file');
    mkdirSync(join(dir, 'empty'));
    expect(() => readSkill(join(dir, 'empty'))).toThrow('contains no files');
  });
});

const skill = (name: string, status: SkillStatus, statusReason: string) => create(SkillSchema, { name, version: 1, status, statusReason });

it('fails an import with a rejected skill, prints the reason, and fails an empty import', () => {
  const waiting = skill('skills/double', SkillStatus.PENDING_REVIEW, 'waits for review');
  const rejected = skill('skills/parse_csv', SkillStatus.REJECTED, 'it has no tests');
  expect(importedText([waiting, rejected]).split('\n').at(-1)).toBe('parse_csv@1 is rejected: it has no tests');
  expect([[waiting, rejected], [waiting], []].map(handedInExit)).toEqual([EXIT.failed, EXIT.ok, EXIT.failed]);
});

function tests(content: unknown, name = 'tests.json') {
  const path = join(dir, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return readTests(path).map((one) => toJson(SkillTestCaseSchema, one));
}

describe('tests of a skill', () => {
  it.each([
    [
      'calls',
      [
        { args: [1, ['a', null]], kwargs: { sep: ',' }, expected: { a: [1.5] } },
        { expected: null, tolerance: 0.1 },
      ],
      [{ call: { args: [1, ['a', null]], kwargs: { sep: ',' }, expected: { a: [1.5] } } }, { call: { expected: null, tolerance: 0.1 } }],
    ],
    [
      'programs',
      [
        { stdin: '2\n', expected_stdout: '4\n' },
        { expected_stdout: '0.3', comparison: 'numeric', tolerance: 0.1 },
      ],
      [{ program: { stdin: '2\n', expectedStdout: '4\n' } }, { program: { expectedStdout: '0.3', comparison: 'numeric', tolerance: 0.1 } }],
    ],
    [
      'what a review shows',
      [
        { kind: 'io', stdin: '1', expectedStdout: '2', comparison: 'exact' },
        { kind: 'python', setup: 'import math', tests: 'assert f()' },
      ],
      [{ program: { stdin: '1', expectedStdout: '2', comparison: 'exact' } }, { python: { setup: 'import math', tests: 'assert f()' } }],
    ],
  ])('are %s', (_what, given, read) => {
    expect(tests(given)).toEqual(read);
  });

  it('are Python with assertions if the file name ends in .py', () => {
    expect(tests('assert double(2) == 4\n', 'double_test.py')).toEqual([{ python: { tests: 'assert double(2) == 4\n' } }]);
  });

  it.each([
    ['no JSON', 'def f(): ...', /is not JSON/],
    ['an empty list', [], /contains no test/],
    ['something that is no test', [{ input: 1 }], /\[0\] is not a test/],
    ['arguments that are none', [{ args: 1, expected: 2 }], /\[0\]: .*ListValue/],
    ['a field that it does not know', [{ args: [], expected: 2, public: false }], /\[0\]: .*public/],
  ])('are refused with the place if they are %s', (_what, content, message) => {
    expect(() => tests(content)).toThrow(message);
  });

  it('call test_… functions that are not called yet, and refuse functions with parameters', () => {
    const two = 'def test_one():\n    assert f(1) == 1\n\ndef test_two() -> None:\n    assert f(2) == 2\n';
    expect(withCalls(two, 'a.py')).toBe(`${two}\ntest_one()\ntest_two()\n`);
    expect(withCalls(`${two}\ntest_one()\ntest_two()\n`, 'a.py')).toBe(`${two}\ntest_one()\ntest_two()\n`);
    expect(withCalls('assert f(1) == 1\n', 'a.py')).toBe('assert f(1) == 1\n');
    for (const code of ['def test_one(client):\n    pass\n', 'async def test_one():\n    pass\n'])
      expect(() => withCalls(code, 'a.py')).toThrow('a.py: nothing calls test_one');
  });
});
