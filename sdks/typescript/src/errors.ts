import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack, durationMs } from '@bufbuild/protobuf/wkt';
import { type ServiceError, status } from '@grpc/grpc-js';
import type { UseSkillResponse } from './gen/etude/v1/skills_pb.js';
import type { Task } from './gen/etude/v1/tasks_pb.js';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema, StatusSchema } from './gen/google/rpc/status_pb.js';

/** A wrong field of the request: its path, such as "spec.prompt", and what is wrong with it. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

interface Details {
  readonly violations?: readonly FieldViolation[];
  readonly retryAfterMs?: number | null;
}

/** A failed call. The message says what was wrong and what to do. */
export class EtudeError extends Error {
  /** Wrong fields of the request. */
  readonly violations: readonly FieldViolation[];
  /** Time to wait before a retry; null if a retry can't help. */
  readonly retryAfterMs: number | null;

  /** @param code Etude's code, such as "NOT_FOUND"; the gRPC status if the server sent no code */
  constructor(
    message: string,
    readonly code: string,
    { violations = [], retryAfterMs = null }: Details = {},
  ) {
    super(message);
    this.name = new.target.name;
    this.violations = violations;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The request is wrong; `violations` name the fields. */
export class InvalidArgumentError extends EtudeError {}
/** There is no such record in this tenant. */
export class NotFoundError extends EtudeError {}
/** The request id was used with another body. */
export class AlreadyExistsError extends EtudeError {}
/** A record has the wrong state for this call, such as a closed sandbox. */
export class FailedPreconditionError extends EtudeError {}
/** The record has changed since it was read. */
export class AbortedError extends EtudeError {}
/** The API key is missing or unknown. */
export class UnauthenticatedError extends EtudeError {}
/** The key lacks the role that the message names. */
export class PermissionDeniedError extends EtudeError {}
/** A limit is reached: of calls, sandboxes, a budget, or the size of a message. */
export class ResourceExhaustedError extends EtudeError {}
/** The gateway, or a service that it needs, can't be reached. */
export class UnavailableError extends EtudeError {}
/** The call took longer than its timeout. */
export class DeadlineExceededError extends EtudeError {}
/** The call was cancelled. */
export class CallCancelledError extends EtudeError {}

/** A task ended without an accepted answer, or asks a question. */
export class TaskFailedError extends EtudeError {
  /** @param task with its best attempt, if there was one */
  constructor(
    message: string,
    code: string,
    readonly task: Task,
  ) {
    super(message, code);
  }
}

/** A skill could not answer. */
export class SkillFailedError extends EtudeError {
  constructor(readonly answer: UseSkillResponse) {
    super(answer.error, 'SKILL_FAILED');
  }
}

const CLASSES: Readonly<Record<number, typeof EtudeError>> = {
  [status.INVALID_ARGUMENT]: InvalidArgumentError,
  [status.NOT_FOUND]: NotFoundError,
  [status.ALREADY_EXISTS]: AlreadyExistsError,
  [status.FAILED_PRECONDITION]: FailedPreconditionError,
  [status.ABORTED]: AbortedError,
  [status.UNAUTHENTICATED]: UnauthenticatedError,
  [status.PERMISSION_DENIED]: PermissionDeniedError,
  [status.RESOURCE_EXHAUSTED]: ResourceExhaustedError,
  [status.UNAVAILABLE]: UnavailableError,
  [status.DEADLINE_EXCEEDED]: DeadlineExceededError,
  [status.CANCELLED]: CallCancelledError,
};

/** Message of grpc-js for a call that could not connect in time. */
const GAVE_UP = 'Channel closed before call started';

/** Makes an EtudeError from the trailers of a failed call. Returns any other error unchanged. */
export function errorOf(error: unknown): unknown {
  if (!(error instanceof Error) || !('metadata' in error)) return error;
  const { code, details: said, metadata } = error as ServiceError;
  const message = said.replace(GAVE_UP, 'nothing answers at the address of the gateway');
  const [bytes] = metadata?.get('grpc-status-details-bin') ?? [];
  const details = bytes instanceof Buffer ? fromBinary(StatusSchema, bytes).details : [];
  const info = details.map((one) => anyUnpack(one, ErrorInfoSchema)).find(Boolean);
  const bad = details.map((one) => anyUnpack(one, BadRequestSchema)).find(Boolean);
  const delay = details.map((one) => anyUnpack(one, RetryInfoSchema)).find(Boolean)?.retryDelay;
  const retryAfterMs = delay ? durationMs(delay) : code === status.UNAVAILABLE ? 0 : null;
  const violations = bad?.fieldViolations.map(({ field, description }) => ({ field, description }));
  return new (CLASSES[code] ?? EtudeError)(message, info?.reason ?? status[code], { violations, retryAfterMs });
}
