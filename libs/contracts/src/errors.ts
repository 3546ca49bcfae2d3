/** Whose doing an error is: the agent's become observations, the caller's return at the gateway, the system's reach the queue. */
export type Fault = 'agent' | 'caller' | 'system';

interface ErrorKind {
  readonly grpc: number;
  readonly retryable: boolean;
  readonly fault: Fault;
}

const kind = (grpc: number, fault: Fault, retryable = false): ErrorKind => ({ grpc, fault, retryable });

/** Every error that crosses a process or reaches a caller. `grpc` is the numeric status of gRPC. Each comment says what to do about it. */
export const ERROR_KINDS = {
  /** Correct the fields that `BadRequest` names. */
  INVALID_ARGUMENT: kind(3, 'caller'),
  /** Check the name. What belongs to another tenant is not found either. */
  NOT_FOUND: kind(5, 'caller'),
  /** The `request_id` was used with another body; take a new one for a new request. */
  ALREADY_EXISTS: kind(6, 'caller'),
  /** Put right what the message names: a setting, a sandbox that has ended or runs something else, a skill that is not in that state or not proven. */
  FAILED_PRECONDITION: kind(9, 'caller'),
  /** What you saw has changed since; read it again, then decide. */
  ABORTED: kind(10, 'caller'),
  /** Send `authorization: Bearer <key>` with a key of this installation. */
  UNAUTHENTICATED: kind(16, 'caller'),
  /** Use a key that has the role the message names. */
  PERMISSION_DENIED: kind(7, 'caller'),
  /** Send less. */
  PAYLOAD_TOO_LARGE: kind(8, 'caller'),
  /** This gateway works on as many calls of your tenant as it may (`ETUDE_CALLS_PER_TENANT_MAX`). Call again later, with fewer at once. */
  TOO_MANY_CALLS: kind(8, 'caller', true),
  /** Nothing; the caller ended it. */
  CANCELLED: kind(1, 'caller'),
  /** Set a later deadline. Repeat a mutation under the same `request_id`. */
  DEADLINE_EXCEEDED: kind(4, 'caller'),
  /** Redis is away, full or read-only. Try again; the operator looks at Redis. */
  QUEUE_UNAVAILABLE: kind(14, 'system', true),
  /** A job does not parse; its dead letter names the path. Two versions may be running side by side. */
  JOB_PAYLOAD_INVALID: kind(13, 'system'),
  /** Another worker has taken the rollout over; nothing to do. */
  JOURNAL_FENCED: kind(10, 'system'),
  /** The model's server does not answer, after retries. See its state, then redrive. */
  MODEL_UNAVAILABLE: kind(14, 'system', true),
  /** The model's server limits you, after waiting. Lower the concurrency or raise the limit. */
  MODEL_RATE_LIMITED: kind(8, 'system', true),
  /** The model's server refused the request; its message says why (key, model name, context length). */
  MODEL_REFUSED: kind(9, 'system'),
  /** The model answered nothing, after retries. */
  MODEL_ANSWER_EMPTY: kind(13, 'system', true),
  /** The answer broke off, after retries. */
  MODEL_ANSWER_TRUNCATED: kind(13, 'system', true),
  /** The answer held no code or did not parse. The attempt goes on with that as feedback. */
  MODEL_ANSWER_UNPARSABLE: kind(13, 'agent'),
  /** The embedding model is another one than memory was made with; set it back. */
  EMBEDDING_LENGTH_WRONG: kind(9, 'system'),
  /** No sandbox could be had, or its controller is away; try again. See the sandbox controller's log. */
  SANDBOX_UNAVAILABLE: kind(14, 'system', true),
  /** All sandboxes are busy, too many calls wait for a session's, or you have as many as you may; try again, close one, or run more. */
  SANDBOX_CAPACITY: kind(8, 'system', true),
  /** This machine can't enforce a limit; the message names it and the setting that accepts that. */
  SANDBOX_CONTROL_MISSING: kind(9, 'system'),
  /** The memory file can't be read or is locked. See its path and rights. */
  MEMORY_UNAVAILABLE: kind(14, 'system', true),
  /** The disk under memory is full; free some. Nothing is lost meanwhile. */
  MEMORY_FULL: kind(8, 'system', true),
  /** The memory file was made by another version or embedder; the message says which. */
  MEMORY_VERSION: kind(9, 'system'),
  /** A mistake in Etude: something was asked for without a tenant. Report it. */
  TENANT_MISSING: kind(13, 'system'),
  /** This gateway is being stopped. Call again; a watch with its last `resume_token`. */
  SHUTTING_DOWN: kind(14, 'system', true),
  /** The workers that took the task died, again and again. See their log, then redrive. */
  WORKER_LOST: kind(14, 'system'),
  /** A mistake in Etude. The message has an id that is in the gateway's log. */
  INTERNAL: kind(13, 'system'),
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERROR_KINDS;

export interface ErrorDetails {
  /** Dotted path of the field that is wrong, as the caller wrote it: "spec.evaluator.io_cases.cases". */
  readonly field?: string;
  readonly violations?: ReadonlyArray<{ field: string; description: string }>;
  readonly retryAfterMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Compare `code`, never the class: errors cross queues as JSON. The message says what was wrong, where, and what to do. */
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

/** The code of anything thrown; INTERNAL where it has none. */
export function errorCode(error: unknown): ErrorCode {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && code in ERROR_KINDS ? (code as ErrorCode) : 'INTERNAL';
}

/** The details of anything thrown; empty where it has none of ours, as a failed call's own text is not. */
export function errorDetails(error: unknown): ErrorDetails {
  const details = (error as { details?: unknown } | null | undefined)?.details;
  return typeof details === 'object' && details !== null ? details : {};
}

export function isRetryable(error: unknown): boolean {
  return ERROR_KINDS[errorCode(error)].retryable;
}

const ANSWER_FAILURES: ReadonlySet<ErrorCode> = new Set(['MODEL_ANSWER_EMPTY', 'MODEL_ANSWER_TRUNCATED']);
/** What a server answers to a request that it takes offence at. Every other refusal (a wrong key, no credit) is one of all requests. */
const REQUEST_REFUSED: ReadonlySet<string | undefined> = new Set(['400', '413', '422']);

/** Whether a model failed at this one request, so that asking something else is still worth it. */
export function isOnlyThisAnswer(error: unknown): boolean {
  const code = errorCode(error);
  return ANSWER_FAILURES.has(code) || (code === 'MODEL_REFUSED' && REQUEST_REFUSED.has(errorDetails(error).metadata?.['status']));
}

/** An abort by cancellation or shutdown, from fetch, timers or ourselves. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'APIUserAbortError');
}
