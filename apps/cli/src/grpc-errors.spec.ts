import { EtudeError } from '@etude/contracts/errors';
import { encodeStatus, STATUS_DETAILS_KEY } from '@etude/contracts/rich-status';
import { Metadata, status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { CliError } from './cli-error.js';
import { explain } from './grpc-errors.js';
import { awayText } from './sandbox/ride-out.js';

/** As a call throws it: from a server of ours, or from the connection itself. */
function failed(code: status, details: string, answer?: EtudeError): Error {
  const metadata = new Metadata();
  if (answer) metadata.set(STATUS_DETAILS_KEY, encodeStatus(answer));
  return Object.assign(new Error(`${code}: ${details}`), { code, details, metadata });
}

const tooMuch = 'this template has 512 MiB at most';
const refused = (message: string) =>
  failed(
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

const missing = (message: string) => explain(failed(status.NOT_FOUND, message), 'h:1');

it('says what lists skills where there is no such skill', () => {
  const hint = [expect.stringMatching(/--agent NAME and --user NAME .*skills list/)];
  expect(missing('There is no skills/none for this reader.')).toMatchObject({ exit: 3, hint });
  expect(missing('There is no tasks/none.')).toMatchObject({ exit: 3, hint: [] });
});

it('names the flag where several users have a skill', () => {
  const message = 'Several users of "a" have a skills/s: ann, bob. Name the user whose it is.';
  const several = failed(status.FAILED_PRECONDITION, message, new EtudeError('FAILED_PRECONDITION', message, { field: 'user' }));
  expect(explain(several, 'h:1')).toMatchObject({ hint: ['--user NAME says whose'] });
});

it('keeps the code for programs', () => {
  expect(explain(refused('x'), 'h:1')).toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(explain(failed(status.UNAVAILABLE, 'read ECONNRESET'), 'h:1')).toMatchObject({ code: 'UNAVAILABLE' });
});

it('says who is away without the words of the connection', () => {
  expect(awayText(failed(status.UNAVAILABLE, 'read ECONNRESET'))).toBe('the gateway is away; trying again for a minute');
  const answer = new EtudeError('SANDBOX_UNAVAILABLE', 'held by another');
  expect(awayText(failed(status.UNAVAILABLE, 'held by another', answer))).toBe(
    'the controller of the sandbox is away; trying again for a minute',
  );
});
