import { randomUUID } from 'node:crypto';
import { ERROR_KINDS, errorCode, EtudeError, type Fault, isAbort } from '@etude/contracts/errors';
import type { ServerCall } from '@etude/contracts/grpc';
import { encodeStatus, STATUS_DETAILS_KEY } from '@etude/contracts/rich-status';
import { Metadata } from '@grpc/grpc-js';
import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { PinoLogger } from 'nestjs-pino';
import { type Observable, throwError } from 'rxjs';
import { boundedError } from './bounded-error.js';
import { endedBy } from './call-context.js';

/** What grpc-js sends as a status. */
export type StatusError = Error & { readonly code: number; readonly details: string; readonly metadata: Metadata };

/** The status that gRPC sends, with `google.rpc.Status` in its trailers. */
export function toServiceError(whole: EtudeError, metadata: Readonly<Record<string, string>> = {}): StatusError {
  const error = boundedError(whole);
  const trailers = new Metadata();
  trailers.set(STATUS_DETAILS_KEY, encodeStatus(error, metadata));
  return Object.assign(new Error(error.message), { code: ERROR_KINDS[error.code].grpc, details: error.message, metadata: trailers });
}

/** Errors of this code come from another process or another copy of the class, so only the shape counts. */
function asEtudeError(error: unknown): EtudeError | null {
  const code = errorCode(error);
  if (code === 'INTERNAL') return null;
  const { message, details } = error as EtudeError;
  return new EtudeError(code, message, details ?? {});
}

/**
 * Everything a handler throws, as a gRPC status.
 *
 * What has a code keeps its code and message. Anything else is a mistake of ours: logged once under an id, of which
 * the caller gets only that. Without this, Nest would answer UNKNOWN to all of them.
 */
@Catch()
export class StatusFilter implements ExceptionFilter {
  constructor(private readonly logger: PinoLogger) {}

  catch(error: unknown, host: ArgumentsHost): Observable<never> {
    return throwError(() => this.#status(isAbort(error) ? (endedBy(callOf(host)) ?? error) : error, pathOf(host)));
  }

  #status(error: unknown, method: string): StatusError {
    const known = asEtudeError(error);
    if (known) {
      const fault: Fault = ERROR_KINDS[known.code].fault;
      if (fault === 'system') this.logger.warn({ method, errorCode: known.code, reason: known.message }, 'Call failed');
      return toServiceError(known);
    }
    const id = randomUUID();
    this.logger.error({ method, errorId: id, err: error }, 'Call failed for a reason that has no code');
    return toServiceError(
      new EtudeError('INTERNAL', `Something went wrong inside the gateway. Tell the operator this id, it is in the log: ${id}.`),
      { id },
    );
  }
}

const callOf = (host: ArgumentsHost) => host.getArgs<unknown[]>()[2] as ServerCall;

function pathOf(host: ArgumentsHost): string {
  const call = callOf(host) as { getPath?: () => string } | undefined;
  return call?.getPath?.() ?? 'unknown';
}
