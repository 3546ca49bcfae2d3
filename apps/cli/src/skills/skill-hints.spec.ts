import { expect, it } from 'vitest';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { draftError, failureHint, rollbackError } from './skill-hints.js';
import { objectOf } from './use-skill.js';

const refused = (message: string) => new CliError(EXIT.usage, `INVALID_ARGUMENT: ${message}`, [], { code: 'INVALID_ARGUMENT' });
const program = [{ test: { case: 'program' as const, value: { stdin: '', expectedStdout: '' } } }];

it('names --program where a function has tests of a program', () => {
  const error = refused('skill.tests[0]: runs a program, and this is the function main');
  expect(draftError(error, { tests: program })).toMatchObject({ message: error.message, hint: [expect.stringContaining('--program')] });
  expect(draftError(error, { tests: program, isProgram: true })).toBe(error);
  expect(draftError(error, { tests: [] })).toBe(error);
  const other = refused('skill.code: line 1');
  expect(draftError(other, { tests: program })).toBe(other);
});

it('names --to where a rollback needs a version', () => {
  const error = new CliError(EXIT.conflict, 'no earlier version was in use; name one with to_version', ['field: to_version']);
  expect(rollbackError(error)).toMatchObject({
    exit: EXIT.conflict,
    message: 'no earlier version was in use; name one with --to',
    hint: [],
  });
});

it('names --package where a module is missing', () => {
  expect(failureHint('its tests fail: test 1 of 1: raised ModuleNotFoundError at line 1')).toContain('--package');
  expect(failureHint('its tests fail: test 1 of 1: wrong answer')).toBe('');
});

it('names the flag that is no JSON object', () => {
  expect(() => objectOf('[1]', '--example', [])).toThrow('--example is no JSON object');
});
