/** Who causes an error. The gateway returns errors of the caller; errors of the system reach the queue. */
type Fault = 'caller' | 'system';

interface ErrorKind {
  readonly grpc: number;
  readonly retryable: boolean;
  readonly fault: Fault;
}

const kind = (grpc: number, fault: Fault, retryable = false): ErrorKind => ({ grpc, fault, retryable });

/** All errors that cross a process or reach a caller. `grpc` is the gRPC status. Each comment tells the reader what to do. */
export const ERROR_KINDS = {
  /** Correct the fields that `BadRequest` names. */
  INVALID_ARGUMENT: kind(3, 'caller'),
  /** Check the name. Records of other tenants are reported as not found too. */
  NOT_FOUND: kind(5, 'caller'),
  /** The `request_id` was used with another body. Use a new `request_id` for a new request. */
  ALREADY_EXISTS: kind(6, 'caller'),
  /** Correct what the message names: a setting, a sandbox that has ended or is busy, or a skill with the wrong status or without proof. */
  FAILED_PRECONDITION: kind(9, 'caller'),
  /** The record has changed since you read it. Read it again, then decide. */
  ABORTED: kind(10, 'caller'),
  /** Send `authorization: Bearer <key>` with a key of this installation. */
  UNAUTHENTICATED: kind(16, 'caller'),
  /** Use a key that has the role the message names. */
  PERMISSION_DENIED: kind(7, 'caller'),
  /** The request is too large. Send less. */
  PAYLOAD_TOO_LARGE: kind(8, 'caller'),
  /** The gateway already works on `ETUDE_CALLS_PER_TENANT_MAX` calls of your tenant. Call again later, with fewer calls at once. */
  TOO_MANY_CALLS: kind(8, 'caller', true),
  /** The tenant has too many unfinished tasks, or submitted too many within a minute. Submit again later, or have the operator raise the limit. */
  TENANT_LIMIT: kind(8, 'caller', true),
  /** The tenant has used up its model tokens or money of this day. Try again after midnight UTC, or have the operator raise the budget. */
  BUDGET_USED_UP: kind(8, 'caller'),
  /** Nothing to do: the caller ended the call. */
  CANCELLED: kind(1, 'caller'),
  /** Set a later deadline. Repeat a mutation under the same `request_id`. */
  DEADLINE_EXCEEDED: kind(4, 'caller'),
  /** Redis is unreachable, full or read-only. Try again; the operator checks Redis. */
  QUEUE_UNAVAILABLE: kind(14, 'system', true),
  /** A job does not parse; its dead letter names the path. Two versions of Etude may be running side by side. */
  JOB_PAYLOAD_INVALID: kind(13, 'system'),
  /** Nothing to do: another worker has taken over the rollout. */
  JOURNAL_FENCED: kind(10, 'system'),
  /** The model server did not answer, even after retries. Check it, then redrive the dead letter. */
  MODEL_UNAVAILABLE: kind(14, 'system', true),
  /** The model server still limits the rate after waiting. Lower the concurrency or raise the limit. */
  MODEL_RATE_LIMITED: kind(8, 'system', true),
  /** The model server refused the request; its message says why (key, model name, context length). */
  MODEL_REFUSED: kind(9, 'system'),
  /** The model's answer was empty, even after retries. */
  MODEL_ANSWER_EMPTY: kind(13, 'system', true),
  /** The model's answer was cut off, even after retries. */
  MODEL_ANSWER_TRUNCATED: kind(13, 'system', true),
  /** The embedding model differs from the model that memory was made with. Configure that model again. */
  EMBEDDING_LENGTH_WRONG: kind(9, 'system'),
  /** No sandbox could be started, or its controller is unreachable. Try again; see the sandbox controller's log. */
  SANDBOX_UNAVAILABLE: kind(14, 'system', true),
  /** All sandboxes are busy, too many calls wait for one session, or your quota is used up. Try again, close a sandbox, or have the limit raised. */
  SANDBOX_CAPACITY: kind(8, 'system', true),
  /** This machine can't enforce a limit. The message names the limit and the setting that accepts running without it. */
  SANDBOX_CONTROL_MISSING: kind(9, 'system'),
  /** The memory file can't be read or is locked. Check its path and permissions. */
  MEMORY_UNAVAILABLE: kind(14, 'system', true),
  /** The disk that holds memory is full. Free some space; nothing is lost meanwhile. */
  MEMORY_FULL: kind(8, 'system', true),
  /** The memory file was made by another version or embedder; the message says which. */
  MEMORY_VERSION: kind(9, 'system'),
  /** A bug in Etude: something was requested without a tenant. Report it. */
  TENANT_MISSING: kind(13, 'system'),
  /** This gateway is shutting down. Call again; continue a watch with its last `resume_token`. */
  SHUTTING_DOWN: kind(14, 'system', true),
  /** The workers that took the task died repeatedly. See their log, then redrive the dead letter. */
  WORKER_LOST: kind(14, 'system'),
  /** A bug in Etude. The message has an id that is also in the gateway's log. */
  INTERNAL: kind(13, 'system'),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERROR_KINDS;

export interface ErrorDetails {
  /** Dotted path of the wrong field, as the caller wrote it: "spec.evaluator.io_cases.cases". */
  readonly field?: string;
  readonly violations?: ReadonlyArray<{ field: string; description: string }>;
  readonly retryAfterMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Compare `code`, not the class: errors cross queues as JSON. The message names the problem, its place and the remedy. */
export class EtudeError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = 'EtudeError';
    this.code = code;
    this.details = details;
  }
}

/** The code of any thrown value; INTERNAL if it has no known code. */
export function errorCode(error: unknown): ErrorCode {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && code in ERROR_KINDS ? (code as ErrorCode) : 'INTERNAL';
}

/** The details of any thrown value; empty if they aren't an object (gRPC errors have a text under this name). */
export function errorDetails(error: unknown): ErrorDetails {
  const details = (error as { details?: unknown } | null | undefined)?.details;
  return typeof details === 'object' && details !== null ? details : {};
}

export function isRetryable(error: unknown): boolean {
  return ERROR_KINDS[errorCode(error)].retryable;
}

const ANSWER_FAILURES: ReadonlySet<ErrorCode> = new Set(['MODEL_ANSWER_EMPTY', 'MODEL_ANSWER_TRUNCATED']);
/** HTTP statuses by which a model server rejects one request. Any other refusal (wrong key, no credit) would hit every request. */
const REQUEST_REFUSED: ReadonlySet<string | undefined> = new Set(['400', '413', '422']);

/** Whether the model failed only at this request, so that a different request may still succeed. */
export function isOnlyThisAnswer(error: unknown): boolean {
  const code = errorCode(error);
  return ANSWER_FAILURES.has(code) || (code === 'MODEL_REFUSED' && REQUEST_REFUSED.has(errorDetails(error).metadata?.['status']));
}

/** Whether this is an abort by cancellation or shutdown: from fetch, timers or Etude. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'APIUserAbortError');
}

/** The error of work whose signal aborted. Its name is always AbortError; another reason that the caller gave is its `cause`. */
export function abortError({ reason }: AbortSignal): Error {
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  return Object.assign(new Error('aborted', { cause: reason }), { name: 'AbortError' });
}

/** Stops waiting for `work` when the signal aborts. @throws the signal's reason */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
