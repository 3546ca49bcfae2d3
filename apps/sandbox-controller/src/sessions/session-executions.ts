import { EtudeError } from '@etude/contracts/errors';
import type { RunResult, SandboxLimits, SandboxRun } from '@etude/contracts/sandbox';
import { contentDigest } from '@etude/domain/skills/content-digest';
import type { ClaimedSandbox } from '@etude/sandbox/sandbox-driver';
import { ExecutionLog, type FinishedLogs, LogSink } from './execution-log.js';

export interface SessionExecution {
  readonly executionId: string;
  readonly run: SandboxRun;
  readonly limits: SandboxLimits;
}

interface Known {
  /** Of what was asked; null where a caller only followed it, so that nobody has said here. */
  readonly digest: string | null;
  /** null where it had to go; the sandbox tells it again. */
  log: ExecutionLog | null;
  stop: AbortController;
}

/** Ids that a session remembers, so that none runs twice. */
const KNOWN_MAX = 2_000;
const NEVER = new AbortController();

/** The executions of one session: one at a time, each once by its id, going on when their caller leaves. */
export class SessionExecutions {
  readonly #known = new Map<string, Known>();
  #running: string | null = null;
  #settled: Promise<void> = Promise.resolve();
  #stoppedBy: RunResult['error'];

  constructor(
    private readonly tenant: string,
    private readonly sandbox: ClaimedSandbox,
    private readonly finished: FinishedLogs,
  ) {}

  /**
   * Starts it, or finds the one of the same id.
   *
   * @throws EtudeError FAILED_PRECONDITION (another one runs), ALREADY_EXISTS (the id was used with other code)
   */
  start(execution: SessionExecution): ExecutionLog {
    return this.#find(execution, true);
  }

  /**
   * Finds the one of this id, here or in the sandbox, which may have run it for another controller. Runs nothing: readers get
   * NOT_FOUND where the sandbox does not know it either.
   *
   * @throws EtudeError as `start`
   */
  follow(execution: SessionExecution): ExecutionLog {
    return this.#find(execution, false);
  }

  /** Resolves when the next one may start, where the last one has told its outcome and is only being put away; else at once. */
  async putAway(): Promise<void> {
    const log = this.#running === null ? null : this.#known.get(this.#running)?.log;
    if (log?.hasOutcome) await this.#settled;
  }

  /** @returns whether it was running */
  cancel(executionId: string): boolean {
    if (this.#running !== executionId) return false;
    this.#known.get(executionId)?.stop.abort();
    return true;
  }

  /** Resolves once the readers of what runs were told how it ended. */
  async settle(): Promise<void> {
    await this.#settled;
  }

  /** Stops what runs, for good. Resolves as `settle`. @param why said with its outcome */
  async stop(why: RunResult['error']): Promise<void> {
    this.#stoppedBy = why;
    if (this.#running !== null) this.cancel(this.#running);
    await this.settle();
  }

  /** Readers get `error`; what runs is left alone. */
  leave(error: Error): void {
    for (const { log } of this.#known.values()) {
      log?.end(error);
      if (log) this.finished.drop(log);
    }
    this.#known.clear();
  }

  #find(execution: SessionExecution, mayRun: boolean): ExecutionLog {
    const { executionId, run, limits } = execution;
    const digest = contentDigest({ run, limits });
    const known = this.#known.get(executionId);
    if (known && known.digest !== null && known.digest !== digest && !isEmpty(run)) throw usedOtherwise(executionId);
    if (known?.log) return known.log;
    if (this.#running !== null) throw busy(this.#running);
    const runs = mayRun && !known ? [run] : [];
    return this.#tell(execution, runs, known ?? { digest: mayRun ? digest : null, log: null, stop: NEVER });
  }

  /** The sandbox knows the id as well: one that it has run is told again from the start, and not run. Without runs it only tells. */
  #tell({ executionId, limits }: SessionExecution, runs: SandboxRun[], known: Known): ExecutionLog {
    const log = new ExecutionLog();
    known.log = log;
    known.stop = new AbortController();
    this.#known.set(executionId, known);
    this.#forgetOldest();
    this.#running = executionId;
    const request = { executionId, tenant: this.tenant, files: [], limits, stopOnFailure: false, runs, keep: true };
    this.#settled = this.#follow(request, known, log);
    return log;
  }

  async #follow(request: Parameters<ClaimedSandbox['execute']>[0], known: Known, log: ExecutionLog): Promise<void> {
    const sink = new LogSink(log, () => this.#stoppedBy);
    try {
      const end = await this.sandbox.execute(request, sink, known.stop.signal);
      if (end.ended === 'lost' && known.stop.signal.aborted) sink.cancel();
      else if (end.ended === 'lost') sink.lose(end);
    } catch (error) {
      if (known.stop.signal.aborted) sink.cancel();
      else this.#fail(request.executionId, log, error as Error);
    }
    this.#running = null;
    log.end();
    if (this.#known.get(request.executionId) === known) this.finished.keep(log, () => (known.log = null));
  }

  /** It can be asked for again. */
  #fail(executionId: string, log: ExecutionLog, error: Error): void {
    this.#known.delete(executionId);
    log.end(error);
  }

  #forgetOldest(): void {
    for (const [id, { log }] of this.#known) {
      if (this.#known.size <= KNOWN_MAX) return;
      if (id === this.#running) continue;
      if (log) this.finished.drop(log);
      this.#known.delete(id);
    }
  }
}

/** A caller that only follows need not say the code again. */
const isEmpty = (run: SandboxRun) => (run.kind === 'cell' && run.code === '') || (run.kind === 'command' && run.command === '');

const usedOtherwise = (executionId: string) =>
  new EtudeError(
    'ALREADY_EXISTS',
    `execution_id "${executionId}" was used for other code or limits in this sandbox; use a new execution_id for a new execution`,
    { field: 'execution_id' },
  );

const busy = (executionId: string) =>
  new EtudeError(
    'FAILED_PRECONDITION',
    `Execution "${executionId}" runs in this sandbox, which runs one at a time. Wait for its result, or cancel it.`,
    { metadata: { executionId } },
  );
