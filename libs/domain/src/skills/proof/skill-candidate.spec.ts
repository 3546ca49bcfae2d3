import { SkillName } from '@etude/contracts/ids';
import { Skill } from '@etude/contracts/memory';
import { Evaluator } from '@etude/contracts/task';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../content-digest.js';
import { buildSkillCandidate, skillName, type SolvedTask } from './skill-candidate.js';
import { evaluatorOf, testsFrom } from './run-skill-tests.js';

const solved = (over: Partial<SolvedTask> & { evaluator: Evaluator }): SolvedTask => ({
  scope: { tenant: 'acme', agent: 'solver', user: null },
  taskId: 't00000001',
  prompt: 'Write a program that adds the two numbers it reads.',
  fingerprint: 'f1',
  code: 'print(sum(map(int, input().split())))',
  description: 'Adds two numbers.',
  scenarios: ['sums from standard input'],
  model: 'm',
  scripted: true,
  at: 5,
  ...over,
});
const io = Evaluator.parse({
  kind: 'io_cases',
  cases: [
    { stdin: '1 2', expectedStdout: '3' },
    { stdin: '2 2', expectedStdout: '4' },
  ],
});
const calls = Evaluator.parse({ kind: 'function_cases', entryPoint: 'addTwo', cases: [{ args: [1, 2], expected: 3 }] });
const python = Evaluator.parse({ kind: 'python_tests', entryPoint: 'add', setup: 'import math\n', tests: 'assert add(1, 2) == 3' });

describe('buildSkillCandidate', () => {
  it('makes a valid candidate from each evaluator with cases', () => {
    for (const [evaluator, code] of [
      [io, 'print(3)'],
      [calls, 'def addTwo(a, b): return a + b'],
      [python, 'def add(a, b): return a + b'],
    ] as const) {
      const skill = buildSkillCandidate(solved({ evaluator, code }));
      expect(Skill.parse(skill)).toEqual(skill);
      expect(skill).toMatchObject({ kind: 'function', status: 'candidate', sources: ['tasks/t00000001'], scripted: true });
    }
  });

  it('makes no candidate without cases or code', () => {
    expect(buildSkillCandidate(solved({ evaluator: Evaluator.parse({ kind: 'none' }) }))).toBeNull();
    expect(buildSkillCandidate(solved({ evaluator: Evaluator.parse({ kind: 'command', command: 'true' }) }))).toBeNull();
    expect(buildSkillCandidate(solved({ evaluator: io, code: ' \n' }))).toBeNull();
  });

  const stub = Evaluator.parse({ ...python, setup: 'import math\n\ndef add(a, b):\n    """Adds."""\n' });
  const leaning = 'def add(a, b): return math.fsum([a, b])';

  it.each([
    ['includes the setup that its code needs', python, leaning, `import math\n\n\n${leaning}`],
    ['includes the setup once', python, `import math\n\n\n${leaning}`, `import math\n\n\n${leaning}`],
    [
      'completes a stub with the answer as its body',
      stub,
      '    return a + b',
      'import math\n\n\ndef add(a, b):\n    """Adds."""\n    return a + b',
    ],
    ['takes a whole function without the stub', stub, 'def add(a, b):\n    return a', 'import math\n\n\ndef add(a, b):\n    return a'],
    [
      'keeps __future__ imports first',
      python,
      `from __future__ import annotations\n${leaning}`,
      `from __future__ import annotations\n\n\nimport math\n\n\n${leaning}`,
    ],
  ])('%s', (_what, evaluator, code, whole) => {
    expect(buildSkillCandidate(solved({ evaluator, code }))?.code).toBe(whole);
  });

  it('makes a snippet of code without a function', () => {
    expect(buildSkillCandidate(solved({ evaluator: calls, code: 'class addTwo:\n  pass' }))?.kind).toBe('snippet');
    expect(buildSkillCandidate(solved({ evaluator: calls, code: 'addTwo = lambda a, b: a + b' }))?.kind).toBe('function');
  });

  it('appends the scenarios of its use to the description', () => {
    expect(buildSkillCandidate(solved({ evaluator: io }))?.description).toBe(
      'Adds two numbers.\n\nUse it for:\n- sums from standard input',
    );
    expect(buildSkillCandidate(solved({ evaluator: io, description: '', scenarios: [] }))?.description).toMatch(/^Write a program/);
  });
});

const named = (others: NonNullable<SolvedTask['others']>) =>
  buildSkillCandidate(solved({ evaluator: calls, fingerprint: 'f1', others }))?.name;

describe('the name of a skill', () => {
  it('is the entry point, what the model calls it, or telling words of the task', () => {
    expect(skillName('anything', 'hasCloseElements', 'close_pairs')).toBe('has_close_elements');
    expect(skillName('For each line of the input text print its sum.', null, 'Sum of Lines')).toBe('sum_of_lines');
    expect(skillName('Write a program that adds the two numbers it reads.', null)).toBe('adds_two_numbers');
    expect(skillName('Count the vowels.', 'solve')).toBe('count_vowels');
    expect(skillName('的', 'solve')).toBe('solve');
  });

  it('is numbered where another task has it, and stays for better code of the same task', () => {
    expect(named([])).toBe('add_two');
    expect(named([{ name: 'add_two', fingerprints: ['f1'] }])).toBe('add_two');
    expect(named([{ name: 'add_two', fingerprints: ['f0'] }])).toBe('add_two_2');
    const many = Array.from({ length: 9 }, (_, at) => ({ name: at === 0 ? 'add_two' : `add_two_${at + 1}`, fingerprints: ['f0'] }));
    expect(named(many)).toMatch(/^add_two_[0-9a-f]{6}$/);
  });

  it('is valid for any prompt', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.string(),
        fc.option(fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,120}$/)),
        (prompt, called, entryPoint) => {
          expect(SkillName.safeParse(skillName(prompt, entryPoint, called)).success).toBe(true);
        },
      ),
    );
  });
});

const again = (evaluator: Evaluator, entryPoint: string | null) => testsFrom(evaluator).map((test) => evaluatorOf(test, entryPoint));

it('makes the evaluator again from the tests of a skill', () => {
  expect([again(calls, 'addTwo'), again(python, 'add')]).toEqual([[calls], [python]]);
  expect(again(io, null)).toMatchObject([{ cases: [{ stdin: '1 2', expectedStdout: '3' }] }, { cases: [{ stdin: '2 2' }] }]);
});

it('gives the same canonical JSON for any order of keys', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const turned = Object.fromEntries(Object.entries(value).toReversed());
      expect(canonicalJson(turned)).toBe(canonicalJson(value));
      expect(canonicalJson(JSON.parse(canonicalJson(value)))).toBe(canonicalJson(value));
    }),
  );
});
