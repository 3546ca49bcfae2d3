import type { SessionEnd } from '@etude/queue/sandboxes/sandbox-sessions';
import type { ClaimedSandbox, SandboxFiles } from '@etude/sandbox/sandbox-driver';
import type { FinishedLogs } from './finished-logs.js';
import { SessionExecutions } from './session-executions.js';
import { filesUntil } from './session-files.js';
import type { SandboxSession } from '@etude/contracts/sandbox-session';

const EXPIRED = { type: 'SandboxExpired', message: "the sandbox's time was over; renew it in time", line: null };

/** An open session whose sandbox this controller holds. */
export class HeldSession {
  readonly executions: SessionExecutions;
  /** The sandbox's. What fails because the session was closed or expired says that. */
  readonly files: SandboxFiles;
  #expiry: NodeJS.Timeout | undefined;
  #end: Error | null = null;

  constructor(
    readonly session: SandboxSession,
    readonly ownerEpoch: number,
    readonly sandbox: ClaimedSandbox,
    finished: FinishedLogs,
  ) {
    this.executions = new SessionExecutions(session.tenant, sandbox, finished);
    this.files = filesUntil(sandbox.files, () => this.#end);
  }

  get key(): string {
    return keyOf(this.session.tenant, this.session.id);
  }

  /** Counted by the monotonic clock; the one before no longer counts. */
  expireIn(ms: number, onExpired: () => void): void {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(onExpired, ms);
  }

  /** To be called before the sandbox is destroyed. Resolves once the readers of what ran were told how that ended. */
  endBy(state: SessionEnd, error: Error): Promise<void> {
    // Where the sandbox was lost, what ran in it says so itself.
    if (state === 'lost') return this.executions.settle();
    this.#end = error;
    return this.executions.stop(state === 'expired' ? EXPIRED : undefined);
  }

  /** No timer, and no reader waits any more. */
  stop(error: Error): void {
    clearTimeout(this.#expiry);
    this.executions.leave(error);
  }
}

/** Neither part holds a "/". */
export const keyOf = (tenant: string, id: string): string => `${tenant}/${id}`;
