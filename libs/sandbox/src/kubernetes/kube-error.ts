import { errorDetails, EtudeError } from '@etude/contracts/errors';
import type { ExitReason } from '@etude/contracts/sandbox';

/** One answer or failure of the API server, before it becomes an error of ours. */
export interface KubeFailure {
  readonly method: string;
  readonly path: string;
  /** 0: there was no answer. */
  readonly status: number;
  /** The API's own, such as AlreadyExists; for no answer the system's, such as ECONNREFUSED. */
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** What a failure means beyond its status; the first that matches. */
const MEANINGS: ReadonlyArray<{ when: (f: KubeFailure) => boolean; reason: string; exit?: ExitReason; advice: string }> = [
  {
    when: (f) => f.status === 403 && /exceeded quota/.test(f.message),
    reason: 'QuotaExceeded',
    exit: 'capacity',
    advice: 'Raise the ResourceQuota of the namespace or lower the sizes of the pools.',
  },
  {
    when: (f) => f.status === 403 && /violates PodSecurity/.test(f.message),
    reason: 'PodSecurity',
    advice: "The template asks for what the namespace's Pod Security level forbids; change the template, not the level.",
  },
  {
    when: (f) => f.status === 403 && /(maximum|minimum) \S+ usage per|limit to request ratio/.test(f.message),
    reason: 'LimitRange',
    advice: "The template's resources lie outside of the namespace's LimitRange; change one of them.",
  },
  {
    when: (f) => f.status === 403 && /being terminated/.test(f.message),
    reason: 'NamespaceTerminating',
    advice: 'The namespace is being deleted; wait for its end and install k8s/ again.',
  },
  {
    when: (f) => f.status === 403 && /error looking up service account/.test(f.message),
    reason: 'ServiceAccountMissing',
    advice: 'Install k8s/ again: the service account of the sandboxes is missing.',
  },
  { when: (f) => f.status === 403, reason: '', advice: '' },
  {
    when: (f) => f.status === 401,
    reason: 'Unauthorized',
    advice: 'The token or certificate is not accepted: check the service account, or the user in the kubeconfig.',
  },
  {
    when: (f) => f.status === 404 && f.method === 'POST',
    reason: '',
    advice: 'Does the namespace exist? Install k8s/ with `kubectl apply -k k8s`.',
  },
  { when: (f) => f.status === 422, reason: 'Invalid', advice: "The pod's manifest is refused: correct the template." },
  { when: (f) => f.status === 410, reason: 'Expired', advice: '' },
  {
    when: (f) => f.status === 429,
    reason: 'TooManyRequests',
    advice: 'The API server sheds load; lower the request rate of the controller.',
  },
  {
    when: (f) => f.status === 0,
    reason: '',
    advice: 'Check that the API server runs and can be reached from here, and the address and certificate in the kubeconfig.',
  },
];

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' };

function verbOf({ method, path }: KubeFailure): string {
  if (method !== 'GET') return VERBS[method] ?? method;
  if (/[?&]watch=/.test(path)) return 'watch';
  return /\/pods(\?|$)/.test(path) ? 'list' : 'get';
}

function adviceFor(failure: KubeFailure, advice: string): string {
  if (failure.status !== 403 || advice) return advice;
  const resource = /\/log(\?|$)/.test(failure.path) ? 'pods/log' : 'pods';
  return `The Role of the controller lacks the verb "${verbOf(failure)}" on ${resource}, see k8s/.`;
}

/** SANDBOX_CAPACITY for a full quota, SANDBOX_UNAVAILABLE for all else; `metadata` has exit, reason and the HTTP status. */
export function kubeError(failure: KubeFailure): EtudeError {
  const meaning = MEANINGS.find(({ when }) => when(failure));
  const reason = meaning?.reason || failure.reason || `Http${failure.status}`;
  const exit = meaning?.exit ?? 'infra';
  const answered = failure.status === 0 ? `failed with ${reason}` : `was answered with ${failure.status} ${reason}`;
  const text = `${failure.method} ${failure.path} ${answered}: ${failure.message.trim().replace(/\.?$/, '.')}`;
  return new EtudeError(
    exit === 'capacity' ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE',
    `${text} ${adviceFor(failure, meaning?.advice ?? '')}`.trimEnd(),
    {
      metadata: { exit, reason, status: String(failure.status) },
      ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }),
    },
    { cause: failure.cause },
  );
}

/** The HTTP status behind an error of this library; 0 where no answer came, null where it is another error. */
export function kubeStatus(error: unknown): number | null {
  const status = errorDetails(error).metadata?.['status'];
  return status === undefined ? null : Number(status);
}

export function kubeReason(error: unknown): string | null {
  return errorDetails(error).metadata?.['reason'] ?? null;
}

/** Whether what was asked for may have happened although the call failed. */
export function outcomeUnknown(error: unknown): boolean {
  return errorDetails(error).metadata?.['outcome'] === 'unknown';
}

/** @returns the error, saying that what was asked for may have happened */
export function withUnknownOutcome(error: unknown): unknown {
  if (kubeStatus(error) === null) return error;
  const { code, message, details } = error as EtudeError;
  const metadata = { ...details.metadata, outcome: 'unknown' };
  return new EtudeError(code, `${message} It may have been done all the same.`, { ...details, metadata }, { cause: error });
}
