import { EtudeError } from '@etude/contracts/errors';
import { status } from '@grpc/grpc-js';
import { Command } from 'commander';
import { expect, it } from 'vitest';
import { serviceError } from '../test/service-error.js';
import { CliError } from './cli-error.js';
import { explain } from './grpc-errors.js';
import { inTypedNames } from './typed-names.js';

const command = new Command('recall')
  .argument('<query>')
  .option('--layer <layer>')
  .option('--media-type <type>')
  .option('--tokens <n>')
  .option('--agent <name>');

function told(field: string, message = `The request is wrong. ${field}: must be otherwise`): CliError {
  const violations = [{ field, description: 'must be otherwise' }];
  const refused = serviceError(status.INVALID_ARGUMENT, message, new EtudeError('INVALID_ARGUMENT', message, { violations }));
  return inTypedNames(explain(refused, 'h:1'), command) as CliError;
}

it.each([
  ['layers[0]', '--layer'],
  ['query', '<query>'],
  ['head.media_type', '--media-type'],
  ['tokens_max', '--tokens'],
  ['agent', '--agent'],
  ['similarity_min', 'similarity_min'],
  ['skill.agent', 'skill.agent'],
])('calls %s what was typed for it: %s', (field, typed) => {
  expect(told(field)).toMatchObject({
    exit: 2,
    code: 'INVALID_ARGUMENT',
    message: `INVALID_ARGUMENT: The request is wrong. ${typed}: must be otherwise`,
    hint: [],
  });
});

it('says what was typed where the message names no field', () => {
  expect(told('agent', 'That must be otherwise.').hint).toEqual(['that is --agent']);
  expect(told('agent', 'Wrong.').hint).toEqual(['--agent: must be otherwise']);
});

it('leaves what is no answer of a service as it is', () => {
  for (const error of [new Error('broken'), new CliError(2, 'name exactly one')]) expect(inTypedNames(error, command)).toBe(error);
});
