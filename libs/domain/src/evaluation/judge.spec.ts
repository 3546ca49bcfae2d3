import { EXIT_REASONS, RETRYABLE_EXITS, type RunResult } from '@etude/contracts/sandbox';
import { Evaluator } from '@etude/contracts/task';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judge, type Judgement } from './judge.js';
import { evaluatorProblems, rulesOf } from './evaluators.js';
import { CLEAN_RUN } from '../../test/run-results.js';

const crashed = (last: string): RunResult => ({
  ...CLEAN_RUN,
  exit: 'nonzero',
  exitCode: 1,
  stderr: `Traceback (most recent call last):\n  File "main.py", line 7, in <module>\n${last}\n`,
});
const io = (...cases: Array<[string, string, boolean]>) =>
  Evaluator.parse({
    kind: 'io_cases',
    cases: cases.map(([stdin, expectedStdout, isPublic]) => ({ stdin, expectedStdout, public: isPublic })),
  });
const named = (name: string, spec: object) => Evaluator.parse({ kind: 'named', name, spec });
const judged = (evaluator: Evaluator, ...results: RunResult[]) => judge(evaluator, rulesOf(evaluator).plan('import g\nx = f()'), results);

/** Runs of an answer that tries to leak a hidden case's text. */
const hidden = (text: string): RunResult[] => [
  { ...CLEAN_RUN, stdout: text },
  crashed(`ValueError: invalid literal for int() with base 10: '${text}'`),
  crashed(`${text.replaceAll('-', '_')}: ${text}`),
  { ...CLEAN_RUN, exit: 'nonzero', exitCode: 1, error: { type: 'ValueError', message: text, line: 1 }, value: text },
  { ...CLEAN_RUN, exit: 'nonzero', exitCode: 1, error: { type: 'SyntaxError', message: text, line: 1 } },
  { ...CLEAN_RUN, exit: 'nonzero', exitCode: 1, error: { type: 'NameError', message: `name 'f' is not defined: ${text}`, line: 1 } },
  { ...CLEAN_RUN, exit: 'nonzero', exitCode: 1, error: { type: 'ImportError', message: `No module named '${text}'`, line: 1 } },
  { ...CLEAN_RUN, exit: 'wall', stdout: text },
];

describe('judge', () => {
  it('accepts an answer that passes every case', () => {
    const results = ['2\n', '4\n'].map((stdout) => ({ ...CLEAN_RUN, stdout }));
    const all = { verdict: 'AC', reason: 'all 2 cases passed', casesPassed: 2, casesTotal: 2 };
    expect(judged(io(['1', '2', true], ['3', '4', false]), ...results)).toMatchObject(all);
  });

  it('shows a failing public case in full', () => {
    const { verdict, feedback } = judged(io(['IN', 'WANT', true]), { ...CLEAN_RUN, stdout: 'GOT' });
    expect(verdict).toBe('WA');
    expect(feedback).toMatch(/IN[^]*WANT[^]*GOT/);
  });

  it.each([
    ['TLE', ['wall', 'cpu', 'no_output']],
    ['MLE', ['oom', 'oomkilled']],
    ['RE', ['signal', 'nonzero', 'output', 'pids', 'disk', 'kernel_lost']],
  ] as const)('gives %s for the exits %j', (verdict, exits) => {
    for (const exit of exits) expect(judged(io(['1', '2', false]), { ...CLEAN_RUN, exit, exitCode: null }).verdict).toBe(verdict);
  });

  const calls = Evaluator.parse({
    kind: 'function_cases',
    entryPoint: 'f',
    cases: [{ args: [[1, 2]], expected: [2, 1], public: true }],
  });
  const tests = Evaluator.parse({ kind: 'python_tests', entryPoint: 'f', tests: 'assert f() == 1' });
  const command = Evaluator.parse({ kind: 'command', command: 'x', expectedExitCode: 3, expectedStdout: 'yes' });
  const outputs = named('accepted_outputs', { cases: [{ stdin: '4', outputs: ['2 2', '1 3'], public: true }] });
  const failed = { exit: 'nonzero', exitCode: 1 } as const;
  const error = { type: 'NameError', message: "name 'f' is not defined", line: 2 };
  const printed = 'Traceback (most recent call last):\n  File "main.py", line 115119111114100\nValueError\n';
  const unjudged = { verdict: 'AC', reason: 'ran to its end', casesPassed: 0, casesTotal: 0, output: '42\n' } as const;

  it.each<[string, Evaluator, Partial<RunResult>, Partial<Judgement>]>([
    ['a MemoryError as memory limit exceeded', io(['1', '2', false]), crashed('MemoryError'), { verdict: 'MLE' }],
    [
      'a printed traceback without its line',
      io(['1', '2', false]),
      { ...failed, stderr: printed },
      { reason: 'hidden case 1 of 1: raised ValueError' },
    ],
    ['no case without an evaluator', Evaluator.parse({ kind: 'none' }), { stdout: '42\n' }, unjudged],
    ['the returned value', calls, { value: [2, 1] }, { verdict: 'AC' }],
    [
      'another value, and shows the call',
      calls,
      { value: [1, 2] },
      { verdict: 'WA', feedback: expect.stringContaining('f([1, 2])') as string },
    ],
    ['the exception of a call', calls, { ...failed, error }, { verdict: 'RE', reason: 'case 1 of 1: raised NameError at line 2' }],
    ['the report of the checker', tests, { passed: true }, { verdict: 'AC' }],
    ['words in place of that report', tests, { stdout: 'PASS' }, { verdict: 'WA' }],
    ["a command's exit status and output", command, { ...failed, exitCode: 3, stdout: 'yes\n' }, { verdict: 'AC' }],
    ['another output of a command', command, { ...failed, exitCode: 3, stdout: 'no' }, { verdict: 'WA' }],
    ['another exit status of a command', command, { stdout: 'yes' }, { verdict: 'WA' }],
    ['any of several outputs', outputs, { stdout: '1 3\n' }, { verdict: 'AC' }],
    ['none of several outputs', outputs, { stdout: '3 1' }, { verdict: 'WA', reason: 'case 1 of 1: wrong answer' }],
  ])('judges %s', (_, evaluator, run, judgement) => {
    expect(judged(evaluator, { ...CLEAN_RUN, ...run })).toMatchObject(judgement);
  });

  it.each(['evicted', 'node_lost', 'image_pull', 'capacity', 'infra'] as const)('refuses to judge when the sandbox ended by %s', (exit) => {
    expect(() => judged(io(['1', '2', false]), { ...CLEAN_RUN, exit })).toThrow(expect.objectContaining({ code: 'SANDBOX_UNAVAILABLE' }));
  });

  it('refuses to judge fewer results than runs unless a run crashed', () => {
    const evaluator = io(['1', '2', false], ['3', '4', false]);
    expect(() => judged(evaluator, { ...CLEAN_RUN, stdout: '2' })).toThrow(expect.objectContaining({ code: 'SANDBOX_UNAVAILABLE' }));
    expect(() => judged(evaluator)).toThrow(expect.objectContaining({ code: 'SANDBOX_UNAVAILABLE' }));
    expect(judged(evaluator, crashed('KeyError: 1'))).toMatchObject({ verdict: 'RE', casesPassed: 0, casesTotal: 2 });
  });

  it.each([
    [{}, 'YES  2.50\n\n', true],
    [{}, 'yes 2.5', false],
    [{}, 'yes 2.50 x', false],
    [{ caseSensitive: true }, 'Yes 2.50', false],
    [{ spaceSensitive: true }, 'yes 2.50\n', true],
    [{ spaceSensitive: true }, 'yes 2.50', false],
    [{ absoluteTolerance: 0.11 }, 'yes 2.6', true],
    [{ absoluteTolerance: 0.09 }, 'yes 2.6', false],
    [{ relativeTolerance: 0.05 }, 'yes 24e-1', true],
    [{ relativeTolerance: 0.01 }, 'yes 2.6', false],
    [{ absoluteTolerance: 0.1 }, 'yes two', false],
  ])('compares like the validator of Kattis with %j: %j', (flags, stdout, isAccepted) => {
    const spec = { cases: [{ stdin: '', expectedStdout: 'yes 2.50\n' }], ...flags };
    expect(judged(named('kattis_output', spec), { ...CLEAN_RUN, stdout }).verdict).toBe(isAccepted ? 'AC' : 'WA');
  });

  it.each([
    ['any_name', {}, ['name']],
    ['accepted_outputs', { cases: [{ stdin: '', outputs: [] }] }, ['spec.cases.0.outputs']],
    ['accepted_outputs', { cases: [{ stdin: '', outputs: ['1'] }] }, []],
  ])('names the wrong fields of evaluator %s: %j', (name, spec, paths) => {
    expect(evaluatorProblems(named(name, spec)).map((problem) => problem.path.join('.'))).toEqual(paths);
  });

  const judgeable = EXIT_REASONS.filter((exit) => exit !== 'ok' && exit !== 'cancelled' && !RETRYABLE_EXITS.has(exit));
  it.each(judgeable)('accepts no answer whose run ended by %s', (exit) => {
    const evaluators = [
      io(['', '', false]),
      Evaluator.parse({ kind: 'function_cases', entryPoint: 'f', cases: [{ expected: null }] }),
      Evaluator.parse({ kind: 'python_tests', entryPoint: 'f', tests: 'x' }),
      Evaluator.parse({ kind: 'command', command: 'true' }),
      Evaluator.parse({ kind: 'none' }),
    ];
    const run: RunResult = { ...CLEAN_RUN, exit, exitCode: null, value: null, passed: true };
    expect(evaluators.map((evaluator) => judged(evaluator, run).verdict)).not.toContain('AC');
  });

  it('shows only how a hidden case failed', () => {
    const secret = fc.uuid().map((id) => `s3cret-${id}`);
    fc.assert(
      fc.property(secret, fc.nat(7), (text, which) => {
        const run = hidden(text).at(which) ?? CLEAN_RUN;
        const evaluators = [
          io([text, text, false]),
          Evaluator.parse({ kind: 'function_cases', entryPoint: 'f', cases: [{ args: [text], expected: `${text}!` }] }),
          Evaluator.parse({ kind: 'python_tests', entryPoint: 'f', tests: `assert f() == "${text}"` }),
        ];
        for (const evaluator of evaluators) {
          const { feedback, reason } = judged(evaluator, run);
          expect(feedback + reason).not.toMatch(/s3cret/);
        }
      }),
    );
  });
});
