import { EtudeError } from '@etude/contracts/errors';
import { status } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { serviceError } from '../test/service-error.js';
import { type CliError, explain } from './errors.js';

const tooMuch = 'this template has 512 MiB at most';
const refused = (message: string) =>
  serviceError(
    status.INVALID_ARGUMENT,
    message,
    new EtudeError('INVALID_ARGUMENT', message, { violations: [{ field: 'limits.memory_mib', description: tooMuch }] }),
  );

const hints = (message: string) => (explain(refused(message), 'h:1') as CliError).hint;

it('describes a wrong field once', () => {
  expect(hints(`limits.memory_mib: ${tooMuch}`)).toEqual([]);
  expect(hints('the request is not valid')).toEqual([`limits.memory_mib: ${tooMuch}`]);
});

it('keeps the error code for programs', () => {
  expect(explain(refused('x'), 'h:1')).toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(explain(serviceError(status.UNAVAILABLE, 'read ECONNRESET'), 'h:1')).toMatchObject({ code: 'UNAVAILABLE' });
});

it('says that a gateway does not answer', () => {
  const error = explain(serviceError(status.UNAVAILABLE, 'Channel closed before call started'), 'h:1') as CliError;
  expect([error.message, ...error.hint].join('\n')).toMatch(/^UNAVAILABLE: nothing answers there\ncheck the gateway at h:1/);
});
