import { Metadata } from '@grpc/grpc-js';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { EtudeError } from './errors.js';
import { boundedError, decodeStatus, encodeStatus, STATUS_DETAILS_KEY } from './rich-status.js';

function roundTrip(error: EtudeError) {
  const trailers = new Metadata();
  trailers.set(STATUS_DETAILS_KEY, encodeStatus(error));
  return decodeStatus(trailers);
}

it('carries the code, the wrong fields and more metadata', () => {
  const violations = [{ field: 'spec.prompt', description: 'must not be empty' }];
  const back = roundTrip(new EtudeError('INVALID_ARGUMENT', 'wrong', { violations, metadata: { id: 'e1' } }));
  expect(back).toEqual({ code: 'INVALID_ARGUMENT', violations, metadata: { id: 'e1' } });
});

it('names a retry time for retryable errors', () => {
  expect(roundTrip(new EtudeError('QUEUE_UNAVAILABLE', 'gone'))?.retryAfterMs).toBe(1_000);
  expect(roundTrip(new EtudeError('MODEL_RATE_LIMITED', 'slow down', { retryAfterMs: 2_500 }))?.retryAfterMs).toBe(2_500);
  expect(roundTrip(new EtudeError('NOT_FOUND', 'no'))?.retryAfterMs).toBeUndefined();
});

it('answers null without details', () => {
  expect(decodeStatus(new Metadata())).toBeNull();
});

/** The default limit of gRPC peers for the trailers of a call. */
const TRAILERS_MAX_BYTES = 8_192;

/** Bytes of an error in gRPC's encoding of a message and a binary value. */
function trailerBytes(error: EtudeError): number {
  const message = encodeURIComponent(error.message.toWellFormed()).replaceAll('%20', ' ').length;
  return message + Math.ceil((encodeStatus(error).byteLength * 4) / 3);
}

it('makes a bounded error of any content fit into trailers', () => {
  const words = fc.string({ unit: 'binary', maxLength: 5_000 });
  const violation = fc.record({ field: words, description: words });
  fc.assert(
    fc.property(words, fc.array(violation, { maxLength: 50 }), words, (message, violations, value) => {
      const error = new EtudeError('INVALID_ARGUMENT', message.repeat(3), { field: message, violations, metadata: { value } });
      expect(trailerBytes(boundedError(error))).toBeLessThan(TRAILERS_MAX_BYTES - 500);
    }),
    { numRuns: 200 },
  );
});
