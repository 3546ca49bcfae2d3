import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { parseEntries, type Problem, READERS, readEntries } from './problems.js';

const humanEval = {
  task_id: 'HumanEval/900',
  prompt: 'from typing import List\n\n\ndef total(xs: List[int]) -> int:\n    """ Sum of xs. """\n',
  entry_point: 'total',
  canonical_solution: '    return sum(xs)\n',
  test: 'def check(candidate):\n    assert candidate([1, 2]) == 3\n',
};
const mbpp = {
  task_id: 901,
  text: 'Write a function to find the longest chain.',
  code: 'class Pair(object):\r\n    def __init__(self, a, b):\r\n        self.a = a\r\ndef longest(arr, n):\r\n  return n',
  test_setup_code: 'root = Pair(1, 2)',
  test_list: ['assert longest([Pair(5, 24), Pair(15, 25)], 2) == 2', 'assert longest([root], 1) == 1'],
  challenge_test_list: [],
};
const lines = (...values: object[]) => values.map((value) => JSON.stringify(value)).join('\n');

function testsOf(problem: Problem | undefined) {
  const kind = problem?.spec.evaluator?.kind;
  if (kind?.case !== 'pythonTests') throw new Error('no python_tests');
  return kind.value;
}

it('HumanEval keeps the prompt verbatim and hides the tests', () => {
  const [problem] = parseEntries(READERS.humaneval, lines(humanEval));
  const tests = testsOf(problem);
  expect(problem?.id).toBe('HumanEval/900');
  expect(problem?.spec.prompt.endsWith(humanEval.prompt)).toBe(true);
  expect(problem?.spec.prompt).not.toContain('assert');
  expect(tests).toMatchObject({ entryPoint: 'total', setup: humanEval.prompt, public: false });
  expect(tests.tests).toBe(`${humanEval.test}\n\ncheck(total)`);
});

describe('MBPP', () => {
  it.each([
    ['is an argument of a builtin', 'def half(n): \r\n  return n / 2', 'assert int(half(4)) == 2', 'half'],
    ['is in brackets, with a space before its own brackets', 'def Half (n): \r\n  return n / 2', 'assert (Half (4)) == 2', 'Half'],
    ['is called check', 'def turn(n):\n  return -n\ndef check(n):\n  return turn(n) == n', 'assert check(0) == True', 'check'],
  ])('finds the function under test if it %s', (_how, code, test, entryPoint) => {
    const [problem] = parseEntries(READERS.mbpp, lines({ ...mbpp, code, test_setup_code: '', test_list: [test] }));
    expect(testsOf(problem)).toMatchObject({ entryPoint, tests: test });
  });

  it('puts the setup code in front of the tests and shows the tests', () => {
    const tests = testsOf(parseEntries(READERS.mbpp, lines(mbpp))[0]);
    expect(tests.tests.split('\n')).toEqual(['root = Pair(1, 2)', ...mbpp.test_list]);
    expect(tests).toMatchObject({ setup: '', public: true });
  });

  it('reads the sanitized file, an array with imports', () => {
    const entry = {
      source_file: 'x',
      task_id: 2,
      prompt: 'Add.',
      code: 'def add(a, b):\n    return a + b',
      test_imports: ['import math'],
      test_list: ['assert math.isclose(add(1, 2), 3)'],
    };
    const [problem] = parseEntries(READERS.mbpp, JSON.stringify([entry], null, 2));
    expect(testsOf(problem)).toMatchObject({ entryPoint: 'add', setup: 'import math', tests: entry.test_list[0] });
    expect(problem?.id).toBe('MBPP/2');
    expect(problem?.spec.prompt).toContain('Add. Your code should pass these tests:\n\nassert math.isclose(add(1, 2), 3)');
  });

  it('names the line whose tests call no defined function', () => {
    const stray = { ...mbpp, task_id: 902, code: 'def other():\n  pass' };
    expect(() => parseEntries(READERS.mbpp, lines(mbpp, stray))).toThrow(
      'line 2: the asserts in "test_list" call no function or class that "code" defines',
    );
  });
});

it('the own format refuses a field that a TaskSpec does not have', () => {
  expect(() => parseEntries(READERS.etude, lines({ id: 'p1', promt: 'Echo.' }))).toThrow(/line 1: .*promt/);
});

it.each([
  ['is no JSON', `${lines(humanEval)}\n\n{"task_id":`, 'line 3: Unexpected end of JSON'],
  ['lacks a field', lines({ ...humanEval, test: undefined }), 'line 1: test:'],
  ['has an id twice', lines(humanEval, humanEval), 'line 2: repeats the id HumanEval/900 of line 1'],
  ['is empty', '\n\n', 'the file has no problems'],
])('bad files are refused before anything is submitted when a line %s', (_what, text, message) => {
  expect(() => parseEntries(READERS.humaneval, text)).toThrow(message);
});

describe('files', () => {
  let dir: string;
  beforeEach(() => void (dir = testFolder()));

  it('are read gzipped or not, with the same problems', () => {
    writeFileSync(join(dir, 'a.jsonl'), lines(humanEval));
    writeFileSync(join(dir, 'a.jsonl.gz'), gzipSync(lines(humanEval)));
    const [plain, zipped] = ['a.jsonl', 'a.jsonl.gz'].map((name) => readEntries(READERS.humaneval, join(dir, name)));
    expect(zipped).toEqual(plain);
  });

  it.each([
    ['bad.jsonl', Buffer.from([0x7b, 0xff, 0xfe]), 'bad.jsonl is not UTF-8 text'],
    ['cut.gz', gzipSync(lines(humanEval)).subarray(0, 40), "cut.gz can't be unpacked"],
  ])('are refused by name: %s', (name, bytes, message) => {
    writeFileSync(join(dir, name), bytes);
    expect(() => readEntries(READERS.humaneval, join(dir, name))).toThrow(message);
  });
});
