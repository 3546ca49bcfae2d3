import { errorDetails, EtudeError } from '@etude/contracts/errors';

/** The request that failed. */
export interface KubeTarget {
  readonly method: string;
  readonly path: string;
}

/** The API's Status object, which answers a request or comes as an event of a watch. */
export interface ApiStatus {
  readonly kind?: string;
  readonly message?: string;
  /** The API's reason, such as AlreadyExists; without an answer the system's error code, such as ECONNREFUSED. */
  readonly reason?: string;
  /** The HTTP status. 0: there was no answer. */
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

const QUOTA = 'QuotaExceeded';
/** The quota admission lost a compare-and-set, because many pods were created at once. */
export const QUOTA_RACE = 'QuotaConflict';

/** The API's own reason or the system's, except for quotas. */
function reasonOf(status: number, reason: string, message: string): string {
  if (status === 403 && message.includes('exceeded quota')) return QUOTA;
  if (status === 409 && message.includes('on resourcequotas')) return QUOTA_RACE;
  return reason || `Http${status}`;
}

/** SANDBOX_CAPACITY for a full quota, else SANDBOX_UNAVAILABLE; `metadata` has exit, reason and the HTTP status. */
export function kubeError(
  { method, path }: KubeTarget,
  { code: status = 500, reason: told = '', message = 'no message', details }: ApiStatus,
  cause?: unknown,
): EtudeError {
  const reason = reasonOf(status, told, message);
  const answered = status === 0 ? `failed with ${reason}` : `was answered with ${status} ${reason}`;
  const full = reason === QUOTA;
  const seconds = details?.retryAfterSeconds;
  return new EtudeError(
    full ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE',
    `${method} ${path} ${answered}: ${message.trim().replace(/\.?$/, '.')}`,
    {
      metadata: { exit: full ? 'capacity' : 'infra', reason, status: String(status) },
      ...(seconds === undefined ? {} : { retryAfterMs: seconds * 1_000 }),
    },
    { cause },
  );
}

/** The HTTP status in an error of `kubeError`: 0 where no answer came. null for any other error. */
export function kubeStatus(error: unknown): number | null {
  const status = errorDetails(error).metadata?.['status'];
  return status === undefined ? null : Number(status);
}

export function kubeReason(error: unknown): string | null {
  return errorDetails(error).metadata?.['reason'] ?? null;
}
