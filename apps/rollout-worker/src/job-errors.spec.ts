import { EtudeError } from '@etude/contracts/errors';
import { RolloutWaits } from '@etude/domain/ports/journal';
import { expect, it } from 'vitest';
import { givesUp } from './rollout-run.processor.js';

const down = new EtudeError('MODEL_UNAVAILABLE', 'down');

it.each([
  ['gives up', 'the last attempt', down, true, false],
  ['gives up', 'an error that is not retryable', new EtudeError('MODEL_REFUSED', 'no'), false, false],
  ['gives up', 'a mistake of ours', new TypeError('no such property'), false, false],
  ['continues', 'an attempt before the last', down, false, false],
  ['continues', 'another worker took the rollout', new EtudeError('JOURNAL_FENCED', 'over'), true, false],
  ['continues', 'a shutdown of this worker', new DOMException('shutdown', 'AbortError'), true, true],
  ['continues', 'a question to the caller', new RolloutWaits({ key: 'a1', text: 'Which?', deadlineAt: 1 }), true, false],
  ['continues', 'an outage of Redis', new EtudeError('QUEUE_UNAVAILABLE', 'away'), true, false],
])('%s after %s', (end, _, error, isLastAttempt, isAborted) => {
  const signal = isAborted ? AbortSignal.abort() : new AbortController().signal;
  expect(givesUp(error, { isLastAttempt, signal })).toBe(end === 'gives up');
});
