import { Metadata } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import { EtudeError } from './errors.js';
import { decodeStatus, encodeStatus, STATUS_DETAILS_KEY } from './rich-status.js';

function roundTrip(error: EtudeError, metadata?: Record<string, string>) {
  const trailers = new Metadata();
  trailers.set(STATUS_DETAILS_KEY, encodeStatus(error, metadata));
  return decodeStatus(trailers);
}

it('carries the code, the wrong fields and more metadata', () => {
  const violations = [{ field: 'spec.prompt', description: 'must not be empty' }];
  const back = roundTrip(new EtudeError('INVALID_ARGUMENT', 'wrong', { violations }), { id: 'e1' });
  expect(back).toEqual({ code: 'INVALID_ARGUMENT', violations, metadata: { id: 'e1' } });
});

it('says when to try again where that helps', () => {
  expect(roundTrip(new EtudeError('QUEUE_UNAVAILABLE', 'gone'))?.retryAfterMs).toBe(1_000);
  expect(roundTrip(new EtudeError('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: 2_500 }))?.retryAfterMs).toBe(2_500);
  expect(roundTrip(new EtudeError('NOT_FOUND', 'no'))?.retryAfterMs).toBeUndefined();
});

it('answers null without details', () => {
  expect(decodeStatus(new Metadata())).toBeNull();
});
