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

/** Meanings of failures; the first match counts. `reason` replaces the reason of the API; '' keeps it. */
const MEANINGS: ReadonlyArray<readonly [status: number, message: RegExp, reason: string, advice: string]> = [
  [403, /exceeded quota/, QUOTA, 'Raise the ResourceQuota of the namespace or lower the sizes of the pools.'],
  [
    403,
    /violates PodSecurity/,
    'PodSecurity',
    "The template asks for what the namespace's Pod Security level forbids; change the template, not the level.",
  ],
  [
    403,
    /(maximum|minimum) \S+ usage per|limit to request ratio/,
    'LimitRange',
    "The template's resources lie outside of the namespace's LimitRange; change one of them.",
  ],
  [403, /cannot \w+ resource/, '', 'The Role of the controller lacks this verb on pods; install k8s/ again.'],
  [401, /^/, 'Unauthorized', 'The token or certificate is not accepted: check the service account, or the user in the kubeconfig.'],
  [404, /^namespaces /, '', 'Does the namespace exist? Install k8s/ with `kubectl apply -k k8s`.'],
  [409, /on resourcequotas/, QUOTA_RACE, ''],
  [422, /^/, 'Invalid', "The pod's manifest is refused: correct the template."],
  [429, /^/, 'TooManyRequests', 'The API server sheds load; lower the request rate of the controller.'],
  [0, /^/, '', 'Check that the API server runs and can be reached from here, and the address and certificate in the kubeconfig.'],
];

/** SANDBOX_CAPACITY for a full quota, else SANDBOX_UNAVAILABLE; `metadata` has exit, reason and the HTTP status. */
export function kubeError({ method, path, status, reason: said, message, retryAfterMs, cause }: KubeFailure): EtudeError {
  const [, , meant, advice = ''] = MEANINGS.find(([code, says]) => code === status && says.test(message)) ?? [];
  const reason = meant || said || `Http${status}`;
  const answered = status === 0 ? `failed with ${reason}` : `was answered with ${status} ${reason}`;
  const full = reason === QUOTA;
  return new EtudeError(
    full ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE',
    `${method} ${path} ${answered}: ${message.trim().replace(/\.?$/, '.')} ${advice}`.trimEnd(),
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
