import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, toJson } from '@bufbuild/protobuf';
import { SkillTestCaseSchema } from '@etude/contracts/gen/etude/v1/skills_pb';
import { afterAll, describe, expect, it } from 'vitest';
import { readTests, withCalls } from './skill-tests.js';

const dir = mkdtempSync(join(tmpdir(), 'etude-tests-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function tests(content: unknown, name = 'tests.json') {
  const path = join(dir, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return readTests(path).map((one) => toJson(SkillTestCaseSchema, create(SkillTestCaseSchema, one)));
}

describe('readTests', () => {
  it('reads calls', () => {
    expect(
      tests([
        { args: [1, ['a', null]], kwargs: { sep: ',' }, expected: { a: [1.5] } },
        { expected: null, tolerance: 0.1 },
      ]),
    ).toEqual([
      { call: { args: [1, ['a', null]], kwargs: { sep: ',' }, expected: { a: [1.5] } } },
      { call: { args: [], kwargs: {}, expected: null, tolerance: 0.1 } },
    ]);
  });

  it('reads programs', () => {
    expect(
      tests([
        { stdin: '2\n', expected_stdout: '4\n' },
        { expected_stdout: '0.3', comparison: 'numeric', tolerance: 0.1 },
      ]),
    ).toEqual([
      { program: { stdin: '2\n', expectedStdout: '4\n', comparison: 'whitespace' } },
      { program: { expectedStdout: '0.3', comparison: 'numeric', tolerance: 0.1 } },
    ]);
  });

  it('reads Python with assertions, by the name of the file', () => {
    expect(tests('assert double(2) == 4\n', 'double_test.py')).toEqual([{ python: { tests: 'assert double(2) == 4\n' } }]);
  });

  it('reads tests as a review shows them', () => {
    const stored = [
      { kind: 'call', args: [1], kwargs: {}, expected: 2, tolerance: 0 },
      { kind: 'io', stdin: '1', expectedStdout: '2', comparison: 'exact', tolerance: 0 },
      { kind: 'python', setup: 'import math', tests: 'assert f()' },
    ];
    expect(tests(stored).map((test) => Object.keys(test as object)[0])).toEqual(['call', 'program', 'python']);
  });

  it.each([
    ['no JSON', 'def f(): ...', /is not JSON/],
    ['an empty list', [], /has no test in it/],
    ['something that is no test', [{ input: 1 }], /\[0\] is no test/],
    ['a test with arguments that are none', [{ args: 1, expected: 2 }], /\[0\]: args: /],
    [
      'an argument of a name that none has',
      [{ kwargs: JSON.parse('{"__proto__":1}') as unknown, expected: 2 }],
      /kwargs\.__proto__: is no name/,
    ],
    ['a mark of cases of tasks', [{ args: [2], expected: 2, public: false }], /\[0\]: public: a test of a skill has no such mark/],
    ['a field that it does not know', [{ args: [], expected: 2, expect: 3 }], /\[0\]: test: /],
  ])('refuses %s, and says where', (_what, content, message) => {
    expect(() => tests(content)).toThrow(message);
  });
});

describe('functions test_… of a Python file', () => {
  it('are called where nobody does', () => {
    const one = 'def test_one():\n    assert f(1) == 1\n';
    const two = 'def test_two() -> None:\n    assert f(2) == 2\n';
    expect(withCalls(`${one}\n${two}`, 'a.py')).toBe(`${one}\n${two}\ntest_one()\ntest_two()\n`);
    expect(withCalls(`${one}\ntest_one()\n`, 'a.py')).toBe(`${one}\ntest_one()\n`);
    expect(withCalls('assert f(1) == 1\n', 'a.py')).toBe('assert f(1) == 1\n');
  });

  it('are refused where nobody could', () => {
    expect(() => withCalls('def test_one(client):\n    pass\n', 'a.py')).toThrow('a.py: nothing calls test_one, which takes arguments');
    expect(() => withCalls('async def test_one():\n    pass\n', 'a.py')).toThrow('is asynchronous');
  });
});
