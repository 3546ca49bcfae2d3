import { EtudeError } from '@etude/contracts/errors';
import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { serviceError } from '../test/service-error.js';
import { awayText } from './calls.js';
import { type CliError, explain } from './errors.js';

const tooMuch = 'this template has 512 MiB at most';
const refused = (message: string) =>
  serviceError(
    status.INVALID_ARGUMENT,
    message,
    new EtudeError('INVALID_ARGUMENT', message, { violations: [{ field: 'limits.memory_mib', description: tooMuch }] }),
  );

const hints = (message: string) => (explain(refused(message), 'h:1') as CliError).hint;

it('says what is wrong with a field once', () => {
  expect(hints(tooMuch)).toEqual(['field: limits.memory_mib']);
  expect(hints(`limits.memory_mib: ${tooMuch}`)).toEqual([]);
  expect(hints('the request is not valid')).toEqual([`limits.memory_mib: ${tooMuch}`]);
});

const missing = (message: string) => explain(serviceError(status.NOT_FOUND, message), 'h:1');

it('says what lists skills where there is no such skill', () => {
  const hint = [expect.stringMatching(/--agent NAME and --user NAME .*skills list/)];
  expect(missing('There is no skills/none for this reader.')).toMatchObject({ exit: 3, hint });
  expect(missing('There is no tasks/none.')).toMatchObject({ exit: 3, hint: [] });
});

it('names the flag where several users have a skill', () => {
  const message = 'Several users of "a" have a skills/s: ann, bob. Name the user whose it is.';
  const several = serviceError(status.FAILED_PRECONDITION, message, new EtudeError('FAILED_PRECONDITION', message, { field: 'user' }));
  expect(explain(several, 'h:1')).toMatchObject({ hint: ['--user NAME says whose'] });
});

it('keeps the code for programs', () => {
  expect(explain(refused('x'), 'h:1')).toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(explain(serviceError(status.UNAVAILABLE, 'read ECONNRESET'), 'h:1')).toMatchObject({ code: 'UNAVAILABLE' });
});

it('says who is away without the words of the connection', () => {
  expect(awayText(serviceError(status.UNAVAILABLE, 'read ECONNRESET'))).toBe('the gateway is away; trying again for a minute');
  const answer = new EtudeError('SANDBOX_UNAVAILABLE', 'held by another');
  expect(awayText(serviceError(status.UNAVAILABLE, 'held by another', answer))).toBe(
    'the controller of the sandbox is away; trying again for a minute',
  );
});
