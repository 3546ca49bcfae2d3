import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Comparison } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { zipOf } from '@etude/test-support/zip';
import { describe, expect, it } from 'vitest';
import { testFolder } from '@etude/test-support/test-folder';
import { readProblemSet } from './eval.command.js';

/** Writes files and reads the problems at `path` below their folder. */
async function problemsIn(files: Readonly<Record<string, string | Uint8Array>>, path: string) {
  const dir = testFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), content);
  }
  const { problems, refused } = await readProblemSet(join(dir, path));
  return { problems, refused: refused.map(({ id, refused: reason }) => `${id}: ${reason.replaceAll(dir, '')}`) };
}
const kindOf = ({ problems: [problem] }: Awaited<ReturnType<typeof problemsIn>>) => problem?.spec.evaluator?.kind;

const squares = {
  question_title: 'Squares',
  question_content: 'Print the square of n.',
  platform: 'atcoder',
  question_id: 'made_up_1',
  starter_code: '',
  difficulty: 'easy',
  public_test_cases: JSON.stringify([{ input: '3\n', output: '9\n', testtype: 'stdin' }]),
  private_test_cases: JSON.stringify([{ input: '5\n', output: '25\n', testtype: 'stdin' }]),
  metadata: '{}',
};
const lcb = (...entries: object[]) => problemsIn({ 'test.jsonl': entries.map((one) => JSON.stringify(one)).join('\n') }, 'test.jsonl');

describe('LiveCodeBench', () => {
  it('shows public tests, hides private ones, and compares numbers without a tolerance', async () => {
    const set = await lcb(squares);
    expect(set.problems[0]).toMatchObject({ id: 'made_up_1', spec: { prompt: '# Squares\n\nPrint the square of n.' } });
    expect(kindOf(set)).toMatchObject({
      case: 'ioCases',
      value: {
        comparison: Comparison.NUMERIC,
        tolerance: Number.MIN_VALUE,
        cases: [
          { stdin: '3\n', expectedStdout: '9\n', public: true },
          { stdin: '5\n', expectedStdout: '25\n', public: false },
        ],
      },
    });
  });

  it.each([
    [2, 'eJxrYIqwZGBgiK5WyswrKC1RslJQMonJU9JRUMovLYEKGJpBREpSi0tKKgtSQWLFJSmZeUq1sYUMegByZBNV'],
    [4, 'eJxrYJlqywABPZbR1UqZeQWlJUpWCkomMXlKOgpK+aUlUAFDM4hISWpxSUllQSpIrLgkJTNPqTZ2ih4ApwMUgA=='],
  ])('reads packed private tests without running their pickle of protocol %i', async (_protocol, packed) => {
    const set = await lcb({ ...squares, private_test_cases: packed });
    expect(kindOf(set)).toMatchObject({ value: { cases: [{}, { stdin: '4\n', expectedStdout: '16\n', public: false }] } });
  });

  it('asks for the method of a class as a function', async () => {
    const set = await lcb({
      ...squares,
      starter_code: 'class Solution:\n    def addUp(self, a: int, b: List[int]) -> int:\n        ',
      public_test_cases: JSON.stringify([{ input: '1\n[2, 3]', output: '6', testtype: 'functional' }]),
      private_test_cases: '[]',
      metadata: '{"func_name": "addUp"}',
    });
    expect(set.problems[0]?.spec.prompt).toMatch(/\n\ndef addUp\(a: int, b: List\[int\]\) -> int:$/);
    const exact = { tolerance: Number.MIN_VALUE };
    expect(kindOf(set)).toMatchObject({ case: 'functionCases', value: { entryPoint: 'addUp', cases: [{ public: true }], ...exact } });
  });

  it.each([
    ['a pickle of other things', { private_test_cases: 'eJxrYJnKxgABsVO8GRP1ABkRAuw=' }, 'Decode it to JSON in Python first'],
    ['cut data', { private_test_cases: 'eJxrYJnKxg' }, "private_test_cases can't be read: "],
    ['no tests', { public_test_cases: '[]', private_test_cases: '' }, 'it has no tests'],
  ])('refuses only the problem with %s', async (_what, over, reason) => {
    const set = await lcb({ ...squares, question_id: 'odd', ...over }, squares);
    expect(set.problems.map(({ id }) => id)).toEqual(['made_up_1']);
    expect(set.refused).toEqual([expect.stringMatching(/^odd: /)]);
    expect(set.refused[0]).toContain(reason);
  });
});

const cows = {
  problem_id: '9_bronze_cows',
  cp_id: '9',
  name: 'Cows',
  problem_level: 'bronze',
  description: 'Count the cows.',
  input_format: 'One line.',
  samples: [{ input: 'a b', output: '2', explanation: '' }],
  num_tests: 2,
  runtime_limit: 4,
  memory_limit: 256,
};
const usaco = (over: object, tests: Readonly<Record<string, string>>) =>
  problemsIn({ 'cows_dict.json': JSON.stringify({ '9_bronze_cows': { ...cows, ...over } }, null, 1), ...tests }, 'cows_dict.json');

describe('USACO', () => {
  it.each([
    ['numbers before the dot', 'tests/9_bronze_cows', ['1.in', '1.out', '2.in', '2.out']],
    ['numbers after the dot', 'usaco_v3/tests/9', ['I.1', 'O.1', 'I.2', 'O.2']],
  ])('reads tests with %s, hidden but for the samples', async (_how, folder, names) => {
    const contents = ['a b\n', '2\n', 'a b c\n', '3\n'];
    const set = await usaco({}, Object.fromEntries(names.map((name, at) => [`${folder}/${name}`, contents[at] ?? ''])));
    const sandbox = { cpuTime: { seconds: 4n }, wallTime: { seconds: 20n }, memoryMib: 256 };
    expect(set.problems[0]?.spec).toMatchObject({ prompt: 'Count the cows.\n\nOne line.', limits: { sandbox } });
    expect(kindOf(set)).toMatchObject({
      case: 'ioCases',
      value: {
        cases: [
          { stdin: 'a b', public: true },
          { stdin: 'a b c\n', expectedStdout: '3\n', public: false },
        ],
      },
    });
  });

  it.each([
    ['no folder of tests', {}, {}, 'there is no folder tests/9_bronze_cows'],
    ['an input without output', {}, { 'tests/9/1.in': 'a' }, '/tests/9 has no 1.out'],
    ['fewer tests than it says', {}, { 'tests/9/1.in': 'a', 'tests/9/1.out': '1' }, '/tests/9 has no 2.in'],
    ['an empty folder of tests', { num_tests: null }, { 'tests/9/readme': '' }, '/tests/9 has no 1.in'],
  ])('refuses a problem with %s', async (_what, over, tests, reason) => {
    expect((await usaco(over, tests)).refused).toEqual([`9_bronze_cows: ${reason}`]);
  });
});

const packed = {
  'problem.yaml': 'name: Hello\nvalidator_flags: float_tolerance 1e-4\nlimits:\n  time_limit: 1.5\n  memory: 1024\n',
  'problem_statement/problem.sv.tex': 'Hej.',
  'problem_statement/problem.en.tex': 'Greet.',
  'data/secret/b/2.in': 'Bo\n',
  'data/secret/b/2.ans': 'Hello Bo 0.5\n',
  'data/sample/1.in': 'Al\n',
  'data/sample/1.ans': 'Hello Al 0.25\n',
  'submissions/accepted/x.py': 'print()',
};
const inFolder = (files: Readonly<Record<string, string>>) =>
  problemsIn(Object.fromEntries(Object.entries(files).map(([name, text]) => [`all/hello/${name}`, text])), 'all');

describe('Kattis packages', () => {
  const expected = {
    problems: [
      {
        id: 'hello',
        spec: {
          prompt: '# Hello\n\nGreet.',
          limits: { sandbox: { cpuTime: { seconds: 1n, nanos: 500_000_000 }, memoryMib: 1024 } },
          evaluator: {
            kind: {
              case: 'named',
              value: {
                name: 'kattis_output',
                spec: {
                  absoluteTolerance: 1e-4,
                  relativeTolerance: 1e-4,
                  cases: [
                    { stdin: 'Al\n', expectedStdout: 'Hello Al 0.25\n', public: true },
                    { stdin: 'Bo\n', expectedStdout: 'Hello Bo 0.5\n', public: false },
                  ],
                },
              },
            },
          },
        },
      },
    ],
    refused: [],
  };

  it('are read from folders with all that judges them', async () => {
    expect(await inFolder(packed)).toMatchObject(expected);
  });

  it.each([
    ['hello.kpp', ''],
    ['x.zip', 'hello/'],
  ])('are read from the archive %s', async (name, folder) => {
    const zip = await zipOf(
      Object.entries(packed).map(([path, text]) => ({ path, bytes: Buffer.from(text) })),
      folder,
    );
    expect(await problemsIn({ [name]: zip }, name)).toMatchObject(expected);
  });

  it.each([
    ['a validator of their own', { 'problem.yaml': 'validation: custom interactive' }, 'it has a validator of its own'],
    ['a folder with a validator', { 'output_validator/validate.py': '' }, 'it has a validator of its own'],
    ['points', { 'problem.yaml': 'type: scoring' }, 'it is a problem of the type scoring'],
    ['an unknown flag', { 'problem.yaml': 'validator_flags: shuffle' }, 'its validator flag shuffle'],
    [
      'flags of one group',
      { 'data/secret/testdata.yaml': 'output_validator_flags: case_sensitive' },
      'its test groups have different validator flags; only one set is supported',
    ],
    ['an input without answer', { 'data/secret/3.in': '' }, 'it has no data/secret/3.ans'],
    ['settings that are no YAML', { 'problem.yaml': 'a: [' }, ''],
  ])('are refused with %s', async (_what, over, reason) => {
    const { problems, refused } = await inFolder({ ...packed, ...over });
    expect(problems).toEqual([]);
    expect(refused[0]).toContain(`hello: ${reason}`);
  });
});

describe('a format', () => {
  it.each([
    ['mbpp', [{ task_id: 1, text: 'Add.', code: 'def add(): pass', test_list: ['assert add() is None'] }], 'pythonTests'],
    ['etude', { id: 'p', prompt: 'Echo.', evaluator: { ioCases: { cases: [{ stdin: 'a' }] } } }, 'ioCases'],
  ])('is told by the content: %s', async (_format, entries, kind) => {
    expect(kindOf(await problemsIn({ a: JSON.stringify(entries) }, 'a'))?.case).toBe(kind);
  });

  it('has to be named where no content tells it', async () => {
    await expect(problemsIn({ a: '{"x": 1}' }, 'a')).rejects.toThrow(/the format of .* is unknown/);
  });
});
