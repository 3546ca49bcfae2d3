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

/** Results that are kept, so that a repeated request for the same execution runs nothing. */
const REMEMBERED_MAX = 200;

/** Whether the infrastructure failed the execution. Such a result is not kept, so a repeated request runs again. */
const isSpoilt = ({ runs }: ExecutionResult) => runs.some(({ exit }) => RETRYABLE_EXITS.has(exit));

/** Runs executions over any driver: each id once, in a fresh sandbox that is destroyed on every path. */
export class DrivenSandboxes implements Sandboxes {
  private readonly known = new Map<string, Running>();

  constructor(private readonly driver: SandboxDriver) {}

  async execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    signal.throwIfAborted();
    const running = this.join(`${request.tenant} ${request.executionId}`, request);
    running.callers += 1;
    const { promise: left, reject } = Promise.withResolvers<never>();
    // The last caller to leave waits until the code has stopped; any other leaves at once.
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
      // Only code that attacks its supervisor loses its kernel. The runs after it continue in another sandbox.
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
      // The reply does not wait for this. After an abort the sandbox is gone already.
      void sandbox.release();
    }
  }
}
