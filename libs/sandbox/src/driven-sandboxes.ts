import { EtudeError } from '@etude/contracts/errors';
import { RETRYABLE_EXITS, type ExecutionRequest, type ExecutionResult } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { RunAssembly } from './run-assembly.js';
import type { ExecutionEnd, ExecutionSink, SandboxDriver } from './sandbox-driver.js';
import { WaitingLine } from './waiting-line.js';

export interface DrivenSandboxesLimits {
  readonly concurrencyMax: number;
  readonly waitingMax: number;
}

interface Running {
  readonly result: Promise<ExecutionResult>;
  readonly stop: AbortController;
  /** Callers that still want the result. */
  callers: number;
}

/** Results that are remembered, so that the same execution asked for again runs nothing. */
const REMEMBERED_MAX = 200;

/** By the infrastructure: asked for again, it is run again. */
const isSpoilt = ({ runs }: ExecutionResult) => runs.some(({ exit }) => RETRYABLE_EXITS.has(exit));

/** Executions over any driver: once per id, so many at once, each in a sandbox of its own that is destroyed on every path. */
export class DrivenSandboxes implements Sandboxes {
  private readonly known = new Map<string, Running>();
  private readonly waiting: WaitingLine<void>;
  /** Executions that hold one of the `concurrencyMax` places. */
  private active = 0;

  constructor(
    private readonly driver: SandboxDriver,
    private readonly limits: DrivenSandboxesLimits,
  ) {
    const refusal = (before: number) =>
      new EtudeError('SANDBOX_CAPACITY', `${limits.concurrencyMax} sandboxes are running and ${before} executions wait; try again later`);
    this.waiting = new WaitingLine({ waitingMax: limits.waitingMax, refusal });
  }

  async execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    signal.throwIfAborted();
    const running = this.join(`${request.tenant} ${request.executionId}`, request);
    running.callers += 1;
    const leave = () => {
      running.callers -= 1;
      if (running.callers === 0) running.stop.abort(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await this.unlessAborted(running, signal);
    } finally {
      signal.removeEventListener('abort', leave);
      if (!signal.aborted) running.callers -= 1;
    }
  }

  /** Stops everything that runs. */
  close(): void {
    for (const running of this.known.values()) running.stop.abort();
  }

  /** A caller that left is told when the code has stopped, or at once while others still want it. */
  private unlessAborted(running: Running, signal: AbortSignal): Promise<ExecutionResult> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => running.callers > 0 && reject(signal.reason as Error), { once: true });
      running.result.then(resolve, reject);
    });
  }

  private join(key: string, request: ExecutionRequest): Running {
    const known = this.known.get(key);
    if (known && !known.stop.signal.aborted) return known;
    const stop = new AbortController();
    const running: Running = { result: this.run(request, stop.signal), stop, callers: 0 };
    this.known.set(key, running);
    running.result.then(
      (result) => (isSpoilt(result) ? this.forget(key, running) : this.forgetOldest()),
      () => this.forget(key, running),
    );
    return running;
  }

  private forget(key: string, running: Running): void {
    if (this.known.get(key) === running) this.known.delete(key);
  }

  private forgetOldest(): void {
    for (const [key, running] of this.known) {
      if (this.known.size <= REMEMBERED_MAX) return;
      if (running.callers === 0) this.known.delete(key);
    }
  }

  private async run(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    signal.throwIfAborted();
    if (this.active < this.limits.concurrencyMax) this.active += 1;
    else await this.waiting.wait(signal);
    try {
      const assembly = new RunAssembly();
      while (assembly.results.length < request.runs.length) {
        const left = { ...request, runs: request.runs.slice(assembly.results.length) };
        const end = await this.runInOne(left, assembly.behind(), signal);
        if (end.ended === 'done') break;
        assembly.lose(end);
        // Only code that attacks its supervisor loses its kernel; those behind it get a sandbox of their own.
        if (end.exit !== 'kernel_lost' || request.stopOnFailure) break;
      }
      return { executionId: request.executionId, runs: assembly.results };
    } finally {
      // The place passes to the execution that waits longest.
      if (!this.waiting.give()) this.active -= 1;
    }
  }

  private async runInOne(request: ExecutionRequest, sink: ExecutionSink, signal: AbortSignal): Promise<ExecutionEnd> {
    const { memoryMiB, diskMiB } = request.limits;
    const sandbox = await this.driver.claim({ template: request.template ?? 'default', memoryMiB, diskMiB }, signal);
    try {
      return await sandbox.execute(request, sink, signal);
    } finally {
      // Destroyed behind the reply; after an abort it is gone already.
      void sandbox.release();
    }
  }
}
