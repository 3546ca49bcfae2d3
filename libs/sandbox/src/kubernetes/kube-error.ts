import { errorDetails, EtudeError } from '@etude/contracts/errors';

/** The request that failed. */
export interface KubeTarget {
  readonly method: string;
  readonly path: string;
}

/** A failed request, before it becomes an EtudeError. */
interface KubeFailure extends KubeTarget {
  /** 0: there was no answer. */
  readonly status: number;
  /** The API's reason, such as AlreadyExists; without an answer the system's error code, such as ECONNREFUSED. */
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The API's Status object. */
export interface ApiStatus {
  readonly kind?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

const QUOTA = 'QuotaExceeded';
/** The quota admission lost a compare-and-set, as happens when many pods are created at once. */
export const QUOTA_RACE = 'QuotaConflict';

/** The reason that a failure is known by here; the API's own or the system's for most. */
function reasonOf({ status, reason, message }: KubeFailure): string {
  if (status === 403 && message.includes('exceeded quota')) return QUOTA;
  if (status === 409 && message.includes('on resourcequotas')) return QUOTA_RACE;
  return reason || `Http${status}`;
}

/** SANDBOX_CAPACITY for a full quota, else SANDBOX_UNAVAILABLE; `metadata` has exit, reason and the HTTP status. */
export function kubeError(failure: KubeFailure): EtudeError {
  const { method, path, status, message, retryAfterMs, cause } = failure;
  const reason = reasonOf(failure);
  const answered = status === 0 ? `failed with ${reason}` : `was answered with ${status} ${reason}`;
  const full = reason === QUOTA;
  return new EtudeError(
    full ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE',
    `${method} ${path} ${answered}: ${message.trim().replace(/\.?$/, '.')}`,
    {
      metadata: { exit: full ? 'capacity' : 'infra', reason, status: String(status) },
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    },
    { cause },
  );
}

/** The error for a Status of the API, which answers a request or comes as an event of a watch. */
export function statusError(target: KubeTarget, { code = 500, reason = '', message = 'no message', details }: ApiStatus): EtudeError {
  const seconds = details?.retryAfterSeconds;
  return kubeError({ ...target, status: code, reason, message, ...(seconds === undefined ? {} : { retryAfterMs: seconds * 1_000 }) });
}

/** The HTTP status in an error of `kubeError`: 0 where no answer came. null for any other error. */
export function kubeStatus(error: unknown): number | null {
  const status = errorDetails(error).metadata?.['status'];
  return status === undefined ? null : Number(status);
}

export function kubeReason(error: unknown): string | null {
  return errorDetails(error).metadata?.['reason'] ?? null;
}
