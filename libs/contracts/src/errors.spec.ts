import { expect, it } from 'vitest';
import { errorDetails, EtudeError, isOnlyThisAnswer } from './errors.js';

const refused = (status: string) => new EtudeError('MODEL_REFUSED', 'no', { metadata: { status } });

it('reads the details of an error, also after it crossed a queue', () => {
  const error = new EtudeError('INVALID_ARGUMENT', 'it is wrong', { field: 'name' });
  expect(errorDetails(error)).toEqual({ field: 'name' });
  expect(errorDetails(JSON.parse(JSON.stringify(error)))).toEqual({ field: 'name' });
});

it('distinguishes a refusal of one request from a refusal of all requests', () => {
  const errors = [refused('400'), refused('401'), new EtudeError('MODEL_ANSWER_EMPTY', 'no'), new EtudeError('MODEL_UNAVAILABLE', 'no')];
  expect(errors.map(isOnlyThisAnswer)).toEqual([true, false, true, false]);
});
