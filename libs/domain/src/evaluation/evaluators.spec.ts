import { Evaluator } from '@etude/contracts/task';
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { rulesOf } from './evaluators.js';

const PROMPT =
  'from typing import List\n\n\ndef total(xs: List[int], start: int = 0) -> int:\n    """ Sum: of xs.\n    >>> total([1])\n    1\n    """\n';
const TESTS = '\n\nMETADATA = {}\n\n\ndef check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n';
const tests = (setup: string) => Evaluator.parse({ kind: 'python_tests', entryPoint: 'total', tests: TESTS, setup });

/** Runs setup, answer and tests in this order with the machine's Python. Each part must be valid Python alone. */
function outcome(setup: string, code: string): string {
  const run = rulesOf(tests(setup)).plan(code)[0];
  if (run?.kind !== 'checked') throw new Error('planned something else');
  const program =
    'import json, sys\nspace = {}\nfor text in json.load(sys.stdin): exec(compile(text, "<text>", "exec"), space)\nprint("passed")';
  const texts = (parts: readonly string[]) =>
    execFileSync('/usr/bin/python3', ['-c', program], { input: JSON.stringify(parts), stdio: 'pipe' })
      .toString()
      .trim();
  expect(texts([`${run.setup}${run.code}`, run.tests])).toBe('passed');
  return texts([run.setup, run.code, run.tests]);
}

describe('the plan of python_tests', () => {
  it.each([
    ['a body', '    return start + sum(xs)'],
    ['a dedented body', 'for x in xs:\n    start += x\nreturn start'],
    ['a one-line body that lost its indentation', 'return start + sum(xs)'],
    ['the function again', 'def total(xs, start=0):\n    return start + sum(xs)'],
    ['the whole prompt with the body', `${PROMPT}    return start + sum(xs)`],
    ['an assignment', 'total = lambda xs, start=0: start + sum(xs)'],
  ])('takes %s behind a stub', (_, code) => {
    expect(outcome(PROMPT, code)).toBe('passed');
  });

  it.each([
    ['no docstring', 'def total(xs, start=0):\n'],
    ['an import before its docstring', 'def total(xs, start=0):\n    import math\n    """Sums.\n# not a comment\n"""\n'],
    ['a comment only', 'def total(xs, start=0):\n    # sums\n'],
    ['decorators', 'import functools\n\n@functools.wraps(print)\ndef total(xs, start=0):\n    """Sums."""\n'],
    ['no line break at its end', 'def total(xs, start=0):\n    "Sums."'],
    ['its indentation already written', 'def total(xs, start=0):\n    """Sums."""\n    '],
  ])('completes a stub with %s', (_, setup) => {
    expect(outcome(setup, '    return start + sum(xs)')).toBe('passed');
  });

  it('accepts a whole function if the setup is no stub', () => {
    expect(outcome('import math\n', 'def total(xs, start=0):\n    return int(math.fsum(xs)) + start')).toBe('passed');
    expect(outcome('', 'def total(xs, start=0):\n    return sum(xs) + start')).toBe('passed');
  });

  it('calls a check that the tests only define', () => {
    expect(() => outcome(PROMPT, '    return 0')).toThrow(/AssertionError/);
  });

  it('does not change tests that call their check', () => {
    const called = `${TESTS.trim()}\ncheck(total)`;
    const run = rulesOf(Evaluator.parse({ kind: 'python_tests', entryPoint: 'total', tests: called })).plan('def total(xs): ...')[0];
    expect(run).toMatchObject({ tests: called });
  });
});

const SECRET = 'secret-7f3a';

describe('the plan of runs', () => {
  it.each([
    { kind: 'io_cases', cases: [true, false].map((isPublic) => ({ stdin: '1', expectedStdout: SECRET, public: isPublic })) },
    {
      kind: 'function_cases',
      entryPoint: 'f',
      cases: [true, false].map((isPublic) => ({ args: [1], expected: SECRET, public: isPublic })),
    },
    { kind: 'command', command: 'true', expectedStdout: SECRET },
  ])('puts no expected output of $kind into a run or a file', (given) => {
    const rules = rulesOf(Evaluator.parse(given));
    const files = rules.files?.('print(1)').map((file) => atob(file.contentBase64));
    expect(JSON.stringify([rules.plan('print(1)'), files])).not.toContain(SECRET);
  });

  it('puts the answer where the command expects it', () => {
    const rules = rulesOf(Evaluator.parse({ kind: 'command', command: 'python3 main.py', answerPath: 'main.py' }));
    expect(rules.files?.('print("é")')).toEqual([{ path: 'main.py', contentBase64: Buffer.from('print("é")\n').toString('base64') }]);
    expect(rules.plan('print("é")')).toEqual([{ kind: 'command', command: 'python3 main.py', stdin: '' }]);
  });
});
