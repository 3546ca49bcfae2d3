import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { errorDetails, EtudeError } from '@etude/contracts/errors';
import { parsedJson } from '@etude/contracts/json';

export interface KubeTarget {
  readonly method: string;
  readonly path: string;
}

/** The error of an answer with a status of 300 or more. */
export async function refusal(request: KubeTarget, answer: IncomingMessage): Promise<Error> {
  const body = await text(answer);
  const status = parsedStatus(body);
  const seconds = Number(answer.headers['retry-after'] ?? status?.details?.retryAfterSeconds);
  return kubeError(request, {
    code: answer.statusCode ?? 0,
    reason: status?.reason ?? '',
    message: status?.message ?? (body.trim().slice(0, 200) || `${answer.statusMessage}`),
    details: seconds >= 0 ? { retryAfterSeconds: seconds } : {},
  });
}

/** null if the body is no Status object but, for example, an error page of a proxy. */
function parsedStatus(body: string): ApiStatus | null {
  const parsed = parsedJson(body) as ApiStatus | null | undefined;
  return parsed?.kind === 'Status' ? parsed : null;
}

/** The API's Status object: the answer to a request, or an event of a watch. */
interface ApiStatus {
  readonly kind?: string;
  readonly message?: string;
  /** The API's reason, such as AlreadyExists; without an answer the system's error code, such as ECONNREFUSED. */
  readonly reason?: string;
  /** The HTTP status. 0: there was no answer. */
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

const QUOTA = 'QuotaExceeded';
/** Many pods were created at once, and the API server lost a compare-and-set on the quota's record. */
export const QUOTA_RACE = 'QuotaConflict';

/** The reason that the API or the system gave. Errors of quotas get a reason of their own. */
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

/** The HTTP status in an error of `kubeError`: 0 if no answer came. null for any other error. */
export function kubeStatus(error: unknown): number | null {
  const status = errorDetails(error).metadata?.['status'];
  return status === undefined ? null : Number(status);
}

export function kubeReason(error: unknown): string | null {
  return errorDetails(error).metadata?.['reason'] ?? null;
}
