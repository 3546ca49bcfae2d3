import { EtudeError } from '@etude/contracts/errors';
import { sandboxName } from '@etude/contracts/ids';
import type { SandboxSession } from '@etude/contracts/sandbox';
import type { SessionEnd } from '@etude/queue/sandboxes/sandbox-sessions';
import type { ClaimedSandbox } from '@etude/sandbox/sandbox-driver';
import { SessionExecutions } from './session-executions.js';

/** The caller's routing is out of date. A retry finds the right controller. */
export const heldElsewhere = (id: string, controllerId: string) =>
  new EtudeError('SANDBOX_UNAVAILABLE', `${sandboxName(id)} is held by another controller (${controllerId}); try again`, {
    retryAfterMs: 500,
    metadata: { controller: controllerId },
  });

export const shuttingDown = () =>
  new EtudeError('SHUTTING_DOWN', 'This sandbox controller is shutting down; call again, with the last resume_token.', {
    retryAfterMs: 500,
  });

const EXPIRED = { type: 'SandboxExpired', message: 'the sandbox expired; renew it before its expire_time', line: null };

/** An open session whose sandbox this controller holds. */
export class HeldSession {
  readonly executions: SessionExecutions;
  #expiry: NodeJS.Timeout | undefined;
  #end: Error | null = null;

  constructor(
    readonly session: SandboxSession,
    readonly ownerEpoch: number,
    readonly sandbox: ClaimedSandbox,
  ) {
    this.executions = new SessionExecutions(session.tenant, sandbox);
  }

  get key(): string {
    return keyOf(this.session);
  }

  /** Replaces the expiry by one in `ms`, on the monotonic clock. */
  expireIn(ms: number, onExpired: () => void): void {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(onExpired, ms);
  }

  /** The end of a closed or expired session, which caused the failure. Otherwise `error`. */
  explain(error: unknown): Error {
    return this.#end ?? (error as Error);
  }

  /** Must be called before the sandbox is destroyed. Resolves once readers have the outcome of the running execution. */
  endBy(state: SessionEnd, error: Error): Promise<void> {
    // The execution in a lost sandbox reports the loss as its outcome.
    if (state === 'lost') return this.executions.settle();
    this.#end = error;
    return this.executions.stop(state === 'expired' ? EXPIRED : undefined);
  }

  /** Stops the expiry timer and ends all readers with `error`. */
  stop(error: Error): void {
    clearTimeout(this.#expiry);
    this.executions.leave(error);
  }
}

/** Unique, because neither part contains a "/". */
export const keyOf = ({ tenant, id }: { readonly tenant: string; readonly id: string }): string => `${tenant}/${id}`;
