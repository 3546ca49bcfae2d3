import { type ErrorCode, EtudeError } from '@etude/contracts/errors';
import { decodeStatus } from '@etude/contracts/rich-status';
import { type ServiceError, status } from '@grpc/grpc-js';

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && typeof (error as Partial<ServiceError>).code === 'number' && 'metadata' in error;
}

/** Statuses that a controller, or the way to it, answers without saying more. */
const PLAIN: Readonly<Record<number, ErrorCode>> = {
  [status.DEADLINE_EXCEEDED]: 'DEADLINE_EXCEEDED',
  [status.RESOURCE_EXHAUSTED]: 'PAYLOAD_TOO_LARGE',
};

/** How gRPC tells of a connection that was refused or broke; CANCELLED, of one that the other side cut. */
const BROKEN: ReadonlySet<number> = new Set([status.UNAVAILABLE, status.CANCELLED]);

/**
 * Whether nobody is there or it is about to go: the same call may be answered by the session's next owner.
 *
 * Ask first whether the caller cancelled it.
 */
export function isAway(error: unknown): boolean {
  if (!isServiceError(error)) return false;
  const details = decodeStatus(error.metadata);
  // Another one holds it by now, and says which.
  if (details) return details.code === 'SHUTTING_DOWN' || details.metadata?.['controller'] !== undefined;
  return BROKEN.has(error.code) || (error.code === status.INTERNAL && error.details.includes('RST_STREAM'));
}

/** What a controller answered, with its code, fields and retry time, for the caller. What has no code comes back as it is. */
export function forwardedError(error: unknown): unknown {
  if (!isServiceError(error)) return error;
  const said = decodeStatus(error.metadata);
  if (said?.code === 'UNAUTHENTICATED' || said?.code === 'PERMISSION_DENIED' || (!said && error.code === status.UNAUTHENTICATED)) {
    return new EtudeError(
      'SANDBOX_UNAVAILABLE',
      'The sandbox controller does not know this gateway. ETUDE_SANDBOX_INTERNAL_TOKEN must be the same for both; tell the operator.',
    );
  }
  if (said) {
    const { code, ...details } = said;
    return new EtudeError(code, error.details, details, { cause: error });
  }
  const code = isAway(error) ? 'SANDBOX_UNAVAILABLE' : PLAIN[error.code];
  if (!code) return error;
  const message = code === 'SANDBOX_UNAVAILABLE' ? `The sandbox controller is away (${error.details}); try again.` : error.details;
  return new EtudeError(code, message, {}, { cause: error });
}
