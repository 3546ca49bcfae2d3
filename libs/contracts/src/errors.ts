/** Whose doing an error is: the agent's become observations, the caller's return at the gateway, the system's reach the queue. */
export type Fault = 'agent' | 'caller' | 'system';

interface ErrorKind {
  readonly grpc: number;
  readonly retryable: boolean;
  readonly fault: Fault;
}

const kind = (grpc: number, fault: Fault, retryable = false): ErrorKind => ({ grpc, fault, retryable });

/** Every error that crosses a process or reaches a caller. `grpc` is the numeric status of gRPC. */
export const ERROR_KINDS = {
  INVALID_ARGUMENT: kind(3, 'caller'),
  NOT_FOUND: kind(5, 'caller'),
  ALREADY_EXISTS: kind(6, 'caller'),
  FAILED_PRECONDITION: kind(9, 'caller'),
  ABORTED: kind(10, 'caller'),
  UNAUTHENTICATED: kind(16, 'caller'),
  PERMISSION_DENIED: kind(7, 'caller'),
  PAYLOAD_TOO_LARGE: kind(8, 'caller'),
  TOO_MANY_CALLS: kind(8, 'caller', true),
  CANCELLED: kind(1, 'caller'),
  DEADLINE_EXCEEDED: kind(4, 'caller'),
  QUEUE_UNAVAILABLE: kind(14, 'system', true),
  JOB_PAYLOAD_INVALID: kind(13, 'system'),
  JOURNAL_FENCED: kind(10, 'system'),
  MODEL_UNAVAILABLE: kind(14, 'system', true),
  MODEL_RATE_LIMITED: kind(8, 'system', true),
  MODEL_REFUSED: kind(9, 'system'),
  MODEL_ANSWER_EMPTY: kind(13, 'system', true),
  MODEL_ANSWER_TRUNCATED: kind(13, 'system', true),
  MODEL_ANSWER_UNPARSABLE: kind(13, 'agent'),
  EMBEDDING_LENGTH_WRONG: kind(9, 'system'),
  SANDBOX_UNAVAILABLE: kind(14, 'system', true),
  SANDBOX_CAPACITY: kind(8, 'system', true),
  SANDBOX_CONTROL_MISSING: kind(9, 'system'),
  MEMORY_UNAVAILABLE: kind(14, 'system', true),
  MEMORY_FULL: kind(8, 'system', true),
  MEMORY_VERSION: kind(9, 'system'),
  TENANT_MISSING: kind(13, 'system'),
  SHUTTING_DOWN: kind(14, 'system', true),
  WORKER_LOST: kind(14, 'system'),
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
