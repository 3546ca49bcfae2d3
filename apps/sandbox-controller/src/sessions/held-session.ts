import type { ClaimedSandbox } from '@etude/sandbox/sandbox-driver';
import type { FinishedLogs } from './finished-logs.js';
import { SessionExecutions } from './session-executions.js';
import type { SandboxSession } from '@etude/contracts/sandbox-session';

/** An open session whose sandbox this controller holds. */
export class HeldSession {
  readonly executions: SessionExecutions;
  #expiry: NodeJS.Timeout | undefined;

  constructor(
    readonly session: SandboxSession,
    readonly ownerEpoch: number,
    readonly sandbox: ClaimedSandbox,
    finished: FinishedLogs,
  ) {
    this.executions = new SessionExecutions(session.tenant, sandbox, finished);
  }

  get key(): string {
    return keyOf(this.session.tenant, this.session.id);
  }

  /** Counted by the monotonic clock; the one before no longer counts. */
  expireIn(ms: number, onExpired: () => void): void {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(onExpired, ms);
  }

  /** No timer, and no reader waits any more. */
  stop(error: Error): void {
    clearTimeout(this.#expiry);
    this.executions.leave(error);
  }
}

/** Neither part holds a "/". */
export const keyOf = (tenant: string, id: string): string => `${tenant}/${id}`;
