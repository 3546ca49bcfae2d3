import { EtudeError } from '@etude/contracts/errors';
import { sandboxName } from '@etude/contracts/ids';
import type { SandboxLimits, SandboxRun, SandboxSession } from '@etude/contracts/sandbox';
import { memberOf } from '@etude/queue/redis/keys';
import type { SessionEnd } from '@etude/queue/sandboxes/sandbox-sessions';
import type { ClaimedSandbox, SandboxExecution } from '@etude/sandbox/sandbox-driver';
import { ExecutionLog } from './execution-log.js';

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

export interface SessionExecution {
  readonly executionId: string;
  readonly run: SandboxRun;
  readonly limits: SandboxLimits;
}

/** The execution whose events the sandbox is sending. */
interface Followed {
  readonly executionId: string;
  /** true: the execution ran earlier. The sandbox repeats its events and runs nothing. */
  readonly again: boolean;
  readonly log: ExecutionLog;
  readonly stop: AbortController;
  readonly settled: Promise<void>;
}

/**
 * An open session whose sandbox this controller holds. Executions run one at a time, each id once, and go on when their caller leaves.
 * The sandbox stores their events.
 */
export class HeldSession {
  #expiry: NodeJS.Timeout | undefined;
  #end: Error | null = null;
  /** Ids of the executions that were requested here. */
  readonly #known = new Set<string>();
  #followed: Followed | null = null;

  constructor(
    readonly session: SandboxSession,
    readonly ownerEpoch: number,
    readonly sandbox: ClaimedSandbox,
  ) {}

  get key(): string {
    return memberOf(this.session.tenant, this.session.id);
  }

  /** Sets the session to expire in `ms` (monotonic clock), instead of at its former time. */
  expireIn(ms: number, onExpired: () => void): void {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(onExpired, ms);
  }

  /** The error for the caller of a failed call: how the session ended, if it has ended; otherwise `error`. */
  explain(error: unknown): Error {
    return this.#end ?? (error as Error);
  }

  /** Must be called before the sandbox is destroyed. Resolves once readers have the outcome of the running execution. */
  async endBy(state: SessionEnd, error: Error): Promise<void> {
    // If the sandbox is lost, the execution gets the loss as its outcome anyway.
    if (state !== 'lost') {
      this.#end = error;
      this.#followed?.stop.abort();
    }
    await this.settled();
  }

  /** Stops the expiry timer and ends all readers with `error`, without stopping the execution. */
  stop(error: Error): void {
    clearTimeout(this.#expiry);
    this.#followed?.log.end(error);
  }

  /**
   * Starts the execution. If its id is known, follows the known execution, which the sandbox may have run for another controller.
   *
   * @param mayRun false: only follow; readers get NOT_FOUND if the sandbox does not know the execution
   * @throws EtudeError FAILED_PRECONDITION (another execution runs)
   */
  async execute({ executionId, run, limits }: SessionExecution, mayRun: boolean): Promise<ExecutionLog> {
    for (let other = this.#followed; other && other.executionId !== executionId; other = this.#followed) {
      // A repeated execution, or an execution with an outcome, ends soon.
      if (!other.again && !other.log.hasOutcome) throw busy(other.executionId);
      await other.settled;
    }
    if (this.#followed) return this.#followed.log;
    const again = !mayRun || this.#known.has(executionId);
    this.#known.add(executionId);
    const log = new ExecutionLog();
    const stop = new AbortController();
    const { tenant } = this.session;
    const request = { executionId, tenant, files: [], limits, stopOnFailure: false, runs: mayRun ? [run] : [], keep: true };
    this.#followed = { executionId, again, log, stop, settled: this.#follow(request, log, stop.signal) };
    return log;
  }

  /** @returns whether the execution was running */
  cancel(executionId: string): boolean {
    if (this.#followed?.executionId !== executionId) return false;
    this.#followed.stop.abort();
    return true;
  }

  /** Resolves once the readers of the running execution have its outcome. */
  async settled(): Promise<void> {
    await this.#followed?.settled;
  }

  async #follow(request: SandboxExecution, log: ExecutionLog, stop: AbortSignal): Promise<void> {
    let failure: Error | null = null;
    try {
      const lost = await this.sandbox.execute(request, log, stop);
      if (lost) log.lose(stop.aborted ? null : lost);
    } catch (error) {
      if (stop.aborted) log.lose(null);
      else failure = error as Error;
    }
    // A failed execution may be requested again.
    if (failure) this.#known.delete(request.executionId);
    this.#followed = null;
    log.end(failure);
  }
}

const busy = (executionId: string) =>
  new EtudeError(
    'FAILED_PRECONDITION',
    `Execution "${executionId}" runs in this sandbox, which runs one execution at a time. Wait for its result, or cancel it.`,
    { metadata: { executionId } },
  );
