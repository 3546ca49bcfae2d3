import { decodingProblem } from '@etude/contracts/grpc';
import { unknownFields } from '../wire/unknown-fields.js';
import { invalid, refuseAny } from '../wire/validation.js';

/** @throws EtudeError INVALID_ARGUMENT where a request does not decode, or has fields that this server does not know */
export function checkRequest(request: object): void {
  const problem = decodingProblem(request);
  if (problem !== undefined) {
    const field = '(request)';
    throw invalid([
      { field, description: `is not a valid message: ${problem}. Text must be UTF-8, and both sides must use the same .proto files` },
    ]);
  }
  refuseAny(unknownFields(request));
}
