import { setTimeout as sleepFor } from 'node:timers/promises';
import { errorDetails, EtudeError } from '@etude/contracts/errors';
import type { ExitReason } from '@etude/contracts/sandbox';

/** The request that failed. */
export interface KubeTarget {
  readonly method: string;
  readonly path: string;
}

/** One answer or failure of the API server, before it becomes an EtudeError. */
interface KubeFailure extends KubeTarget {
  /** 0: there was no answer. */
  readonly status: number;
  /** The API's own word, such as AlreadyExists; without an answer the system's, such as ECONNREFUSED. */
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

interface Meaning {
  readonly status: number;
  readonly method?: string;
  /** In the API's message. */
  readonly says?: RegExp;
  /** Instead of the API's reason. */
  readonly reason?: string;
  readonly exit?: ExitReason;
  readonly advice: string;
}

/** What a failure means beyond its status; the first that matches. */
const MEANINGS: readonly Meaning[] = [
  {
    status: 403,
    says: /exceeded quota/,
    reason: 'QuotaExceeded',
    exit: 'capacity',
    advice: 'Raise the ResourceQuota of the namespace or lower the sizes of the pools.',
  },
  {
    status: 403,
    says: /violates PodSecurity/,
    reason: 'PodSecurity',
    advice: "The template asks for what the namespace's Pod Security level forbids; change the template, not the level.",
  },
  {
    status: 403,
    says: /(maximum|minimum) \S+ usage per|limit to request ratio/,
    reason: 'LimitRange',
    advice: "The template's resources lie outside of the namespace's LimitRange; change one of them.",
  },
  {
    status: 403,
    says: /being terminated|error looking up service account/,
    reason: 'NamespaceIncomplete',
    advice: 'The namespace is being deleted or lacks the service account of the sandboxes; install k8s/ again.',
  },
  {
    status: 401,
    reason: 'Unauthorized',
    advice: 'The token or certificate is not accepted: check the service account, or the user in the kubeconfig.',
  },
  { status: 404, method: 'POST', advice: 'Does the namespace exist? Install k8s/ with `kubectl apply -k k8s`.' },
  { status: 422, reason: 'Invalid', advice: "The pod's manifest is refused: correct the template." },
  { status: 410, reason: 'Expired', advice: '' },
  { status: 429, reason: 'TooManyRequests', advice: 'The API server sheds load; lower the request rate of the controller.' },
  {
    status: 0,
    advice: 'Check that the API server runs and can be reached from here, and the address and certificate in the kubeconfig.',
  },
];

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' };

function verbOf({ method, path }: KubeTarget): string {
  if (method !== 'GET') return VERBS[method] ?? method;
  if (/[?&]watch=/.test(path)) return 'watch';
  return /\/pods(\?|$)/.test(path) ? 'list' : 'get';
}

/** SANDBOX_CAPACITY for a full quota, SANDBOX_UNAVAILABLE for all else; `metadata` has exit, reason and the HTTP status. */
export function kubeError(failure: KubeFailure): EtudeError {
  const meaning = MEANINGS.find(
    ({ status, method, says }) =>
      status === failure.status && (method ?? failure.method) === failure.method && (says?.test(failure.message) ?? true),
  );
  const reason = meaning?.reason || failure.reason || `Http${failure.status}`;
  const exit = meaning?.exit ?? 'infra';
  const lacksVerb = failure.status === 403 && !meaning;
  const advice = lacksVerb ? `The Role of the controller lacks the verb "${verbOf(failure)}" on pods, see k8s/.` : (meaning?.advice ?? '');
  const answered = failure.status === 0 ? `failed with ${reason}` : `was answered with ${failure.status} ${reason}`;
  const text = `${failure.method} ${failure.path} ${answered}: ${failure.message.trim().replace(/\.?$/, '.')}`;
  return new EtudeError(
    exit === 'capacity' ? 'SANDBOX_CAPACITY' : 'SANDBOX_UNAVAILABLE',
    `${text} ${advice}`.trimEnd(),
    {
      metadata: { exit, reason, status: String(failure.status) },
      ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }),
    },
    { cause: failure.cause },
  );
}

/** A Status of the API, which refuses a request or comes as an event of a watch. */
export function statusError(target: KubeTarget, { code, reason, message, details }: ApiStatus): EtudeError {
  const seconds = details?.retryAfterSeconds;
  return kubeError({
    ...target,
    status: code ?? 500,
    reason: reason ?? '',
    message: message ?? 'the server sent an error without a message',
    ...(seconds === undefined ? {} : { retryAfterMs: seconds * 1_000 }),
  });
}

const CERTIFICATE_ERRORS = /CERT|SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|ERR_TLS_/;

/** @param error from a socket; an error of this file is given back as it is */
export function connectionError(target: KubeTarget, error: unknown): Error {
  if (kubeStatus(error) !== null) return error as Error;
  const { code = 'ConnectionLost', message } = error as NodeJS.ErrnoException;
  const reason = CERTIFICATE_ERRORS.test(code) ? 'UntrustedCertificate' : code;
  return kubeError({ ...target, status: 0, reason, message, cause: error });
}

/** The HTTP status behind an error of this library; 0 where no answer came, null where it is another error. */
export function kubeStatus(error: unknown): number | null {
  const status = errorDetails(error).metadata?.['status'];
  return status === undefined ? null : Number(status);
}

export function kubeReason(error: unknown): string | null {
  return errorDetails(error).metadata?.['reason'] ?? null;
}

/** Whether the server may have carried out the request although the call failed. */
export function outcomeUnknown(error: unknown): boolean {
  return errorDetails(error).metadata?.['outcome'] === 'unknown';
}

/** @returns the error, which now says that the request may have been carried out */
export function withUnknownOutcome(error: unknown): unknown {
  if (kubeStatus(error) === null) return error;
  const { code, message, details } = error as EtudeError;
  const metadata = { ...details.metadata, outcome: 'unknown' };
  return new EtudeError(code, `${message} The request may have been carried out all the same.`, { ...details, metadata }, { cause: error });
}

export interface KubeRetryPolicy {
  /** Tries in all, the first included. */
  readonly attemptsMax: number;
  /** First wait; doubles with each try, half of it at random. */
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
  /** A longer Retry-After is cut to this. */
  readonly retryAfterMaxMs: number;
}

export const KUBE_RETRY_POLICY: KubeRetryPolicy = { attemptsMax: 5, backoffMinMs: 100, backoffMaxMs: 5_000, retryAfterMaxMs: 30_000 };

/** No answer, a server that sheds load, or its own failure: the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  const status = kubeStatus(error);
  return status !== null && (status === 0 || status === 429 || status >= 500) && kubeReason(error) !== 'UntrustedCertificate';
}

/** @param made tries so far, at least 1 */
export function backoffMs(made: number, error: unknown, policy: KubeRetryPolicy): number {
  const backoff = Math.min(policy.backoffMaxMs, policy.backoffMinMs * 2 ** Math.min(made - 1, 30)) * (0.5 + Math.random() / 2);
  const asked = Math.min(errorDetails(error).retryAfterMs ?? 0, policy.retryAfterMaxMs);
  // Jitter on top of the wait that was asked for, or all clients that were turned away come back at once.
  return asked > 0 ? asked + Math.min(backoff, asked) / 2 : backoff;
}

/** What an aborted call throws, whatever reason the caller gave. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  return Object.assign(new Error('the call of the Kubernetes API was aborted', { cause: reason }), { name: 'AbortError' });
}

/** @throws an AbortError as soon as `signal` aborts */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleepFor(ms, undefined, { signal }).catch((error: unknown) => {
    throw signal.aborted ? abortError(signal) : error;
  });
}

/** Repeats `attempt` while `retry` says so. @throws the last error, or an AbortError */
export async function withKubeRetries<T>(
  attempt: () => Promise<T>,
  signal: AbortSignal,
  policy = KUBE_RETRY_POLICY,
  retry: (error: unknown) => boolean = isTransient,
): Promise<T> {
  for (let made = 1; ; made++) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw abortError(signal);
      if (made >= policy.attemptsMax || !retry(error)) throw error;
      await pause(backoffMs(made, error, policy), signal);
    }
  }
}
