import { EtudeError } from '@etude/contracts/errors';
import { expect, it } from 'vitest';
import { givesUp, jobError } from './rollout-run.processor.js';

const job = (isLastAttempt: boolean, aborted = false) => ({
  isLastAttempt,
  signal: aborted ? AbortSignal.abort() : new AbortController().signal,
});
const down = new EtudeError('MODEL_UNAVAILABLE', 'down');
const connection = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

it('gives up on the last attempt, and at once after an error that is not retryable', () => {
  expect(givesUp(down, job(false))).toBe(false);
  expect(givesUp(down, job(true))).toBe(true);
  expect(givesUp(new EtudeError('MODEL_REFUSED', 'no'), job(false))).toBe(true);
  expect(givesUp(new TypeError('a mistake of ours'), job(false))).toBe(true);
});

it.each([
  ['another worker holds the rollout', new EtudeError('JOURNAL_FENCED', 'over'), job(true)],
  ['this worker shuts down', new DOMException('shutdown', 'AbortError'), job(true, true)],
  ['Redis is away', connection, job(true)],
])('leaves the task open when %s', (_, error, given) => {
  expect(givesUp(error, given)).toBe(false);
});

it('makes a lost connection a retryable error', () => {
  expect(jobError(connection)).toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
  expect(jobError(down)).toBe(down);
});
