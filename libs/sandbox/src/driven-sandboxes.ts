import { RETRYABLE_EXITS, type ExecutionRequest, type ExecutionResult } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { RunAssembly } from './run-assembly.js';
import type { ExecutionEnd, ExecutionSink, SandboxDriver } from './sandbox-driver.js';

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

/** Executions over any driver: once per id, each in a sandbox of its own that is destroyed on every path. */
export class DrivenSandboxes implements Sandboxes {
  private readonly known = new Map<string, Running>();

  constructor(private readonly driver: SandboxDriver) {}

  async execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    signal.throwIfAborted();
    const running = this.join(`${request.tenant} ${request.executionId}`, request);
    running.callers += 1;
    const { promise: left, reject } = Promise.withResolvers<never>();
    // A caller that leaves is told when the code has stopped, or at once while others still want it.
    const leave = () => {
      running.callers -= 1;
      if (running.callers === 0) running.stop.abort(signal.reason);
      else reject(signal.reason as Error);
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([running.result, left]);
    } finally {
      signal.removeEventListener('abort', leave);
      if (!signal.aborted) running.callers -= 1;
    }
  }

  /** Stops everything that runs. */
  close(): void {
    for (const running of this.known.values()) running.stop.abort();
  }

  private join(key: string, request: ExecutionRequest): Running {
    const known = this.known.get(key);
    if (known && !known.stop.signal.aborted) return known;
    const stop = new AbortController();
    const running: Running = { result: this.run(request, stop.signal), stop, callers: 0 };
    const forget = () => this.known.get(key) === running && this.known.delete(key);
    this.known.set(key, running);
    running.result.then((result) => (isSpoilt(result) ? forget() : this.forgetOldest()), forget);
    return running;
  }

  private forgetOldest(): void {
    for (const [key, running] of this.known) {
      if (this.known.size <= REMEMBERED_MAX) return;
      if (running.callers === 0) this.known.delete(key);
    }
  }

  private async run(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
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
