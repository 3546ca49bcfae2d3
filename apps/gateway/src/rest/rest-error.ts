import { ERROR_KINDS, type ErrorCode, errorCode, EtudeError } from '@etude/contracts/errors';
import { decodeStatus } from '@etude/contracts/rich-status';
import { type ServiceError, status } from '@grpc/grpc-js';

/** Of gRPC's codes, as Google's APIs answer them over HTTP. */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  [status.CANCELLED]: 499,
  [status.INVALID_ARGUMENT]: 400,
  [status.DEADLINE_EXCEEDED]: 504,
  [status.NOT_FOUND]: 404,
  [status.ALREADY_EXISTS]: 409,
  [status.PERMISSION_DENIED]: 403,
  [status.UNAUTHENTICATED]: 401,
  [status.RESOURCE_EXHAUSTED]: 429,
  [status.FAILED_PRECONDITION]: 400,
  [status.ABORTED]: 409,
  [status.OUT_OF_RANGE]: 400,
  [status.UNIMPLEMENTED]: 501,
  [status.UNAVAILABLE]: 503,
};

const REQUEST_TIMEOUT = 408;

export interface RestError {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  readonly body: {
    readonly error: {
      /** As in `docs/errors.md`. */
      readonly code: string;
      readonly message: string;
      readonly fields?: ReadonlyArray<{ field: string; description: string }>;
    };
  };
}

/** What went wrong in a call, or before it, for a caller over HTTP. */
export function restError(error: unknown): RestError {
  if (isServiceError(error)) {
    const known = decodeStatus(error.metadata);
    if (known === null && error.code === status.RESOURCE_EXHAUSTED) return tooLarge();
    return shaped(known?.code ?? 'INTERNAL', error.details, error.code, known?.violations, known?.retryAfterMs);
  }
  const code = errorCode(error);
  const details = error instanceof EtudeError ? error.details : {};
  const refused = shaped(
    code,
    code === 'INTERNAL' ? 'The call failed for a reason of ours.' : (error as Error).message,
    undefined,
    details.violations,
    details.retryAfterMs,
  );
  // No call has begun: it is the request itself that did not come in time.
  return code === 'DEADLINE_EXCEEDED' ? { ...refused, status: REQUEST_TIMEOUT } : refused;
}

/** Of gRPC itself, which refuses a message for its size alone. */
const tooLarge = () => shaped('PAYLOAD_TOO_LARGE', 'What the body says is larger than a request may be; send less at once.');

function shaped(
  code: ErrorCode,
  message: string,
  grpc: number = ERROR_KINDS[code].grpc,
  fields?: ReadonlyArray<{ field: string; description: string }>,
  retryAfterMs?: number,
): RestError {
  const http = code === 'PAYLOAD_TOO_LARGE' ? 413 : (HTTP_STATUS[grpc] ?? 500);
  return { status: http, retryAfterMs, body: { error: { code, message, ...(fields ? { fields } : {}) } } };
}

function isServiceError(error: unknown): error is ServiceError {
  return typeof error === 'object' && error !== null && 'details' in error && typeof (error as ServiceError).code === 'number';
}
