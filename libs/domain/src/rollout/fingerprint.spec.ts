import { Evaluator } from '@etude/contracts/task';
import { expect, it } from 'vitest';
import { fingerprintOf } from './rollout-context.js';

const io = (...cases: Array<{ stdin: string; expectedStdout: string; public?: boolean }>) => Evaluator.parse({ kind: 'io_cases', cases });
const HIDDEN = { stdin: '1', expectedStdout: '2' };
const of = (prompt: string, evaluator: Evaluator = io(HIDDEN)) => fingerprintOf({ prompt, evaluator });

const tests = (entryPoint: string) => Evaluator.parse({ kind: 'python_tests', entryPoint, tests: 'assert True' });

it('is the same for the same task with other hidden cases', () => {
  expect(of('Add.', io({ stdin: '5', expectedStdout: '6' }, { stdin: '', expectedStdout: '' }))).toBe(of('Add.'));
});

it('stays the same over releases, because stored skills are found by it', () => {
  expect(of('Add.')).toBe('c638e1e85cc6ef74d6278994671a7959bc6f99ca01bdf2f773ffea99149f7639');
});

it('ignores line ends, blank lines and Unicode composition', () => {
  expect(of('Zähle.\r\n\r\n  Alles. \n')).toBe(of('Za\u0308hle.\n  Alles.'));
});

it.each<[string, string, string?]>([
  ['another prompt', of('add.')],
  ['indentation', of('  x\n Add.')],
  ['another evaluator', of('Add.', { kind: 'none' })],
  ['another entry point', of('Add.', tests('f')), of('Add.', tests('g'))],
  ['public cases', of('Add.', io({ ...HIDDEN, public: true }))],
])('differs by %s', (_, other, one = of('Add.')) => {
  expect(other).not.toBe(one);
});
