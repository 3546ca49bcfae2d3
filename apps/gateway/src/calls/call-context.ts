import { EtudeError } from '@etude/contracts/errors';
import type { ServerCall } from '@etude/contracts/grpc';
import type { Identity } from '@etude/platform/auth';

/** What a handler knows of its caller beyond the request. */
export interface CallContext extends Identity {
  /** Aborts when the caller is gone, its deadline is over, or this process shuts down. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970; Infinity where the caller set none. */
  readonly deadlineMs: number;
}

const contexts = new WeakMap<ServerCall, CallContext>();

function deadlineOf(call: ServerCall): number {
  const deadline = call.getDeadline();
  return deadline instanceof Date ? deadline.getTime() : deadline;
}

function goneSignal(call: ServerCall): AbortSignal {
  const gone = new AbortController();
  const abort = () => gone.abort(new EtudeError('CANCELLED', 'The caller ended the call.'));
  if (call.cancelled) abort();
  else (call as NodeJS.EventEmitter).once('cancelled', abort);
  return gone.signal;
}

export function openContext(call: ServerCall, identity: Identity, shutdown: AbortSignal): CallContext {
  const context = { ...identity, deadlineMs: deadlineOf(call), signal: AbortSignal.any([goneSignal(call), shutdown]) };
  contexts.set(call, context);
  return context;
}

/** Why the work of this call was stopped; undefined while it is wanted, and where nobody was authenticated. */
export function endedBy(call: ServerCall): unknown {
  const signal = contexts.get(call)?.signal;
  return signal?.aborted === true ? signal.reason : undefined;
}

/**
 * Whose call this is. The only source of a tenant.
 *
 * @throws EtudeError TENANT_MISSING where nobody was authenticated, which would be a mistake of ours: no handler runs without
 */
export function contextOf(call: ServerCall): CallContext {
  const context = contexts.get(call);
  if (!context) throw new EtudeError('TENANT_MISSING', 'A handler ran without an authenticated caller.');
  return context;
}
