import type { ExecutionRequest, ExecutionResult } from '@etude/contracts/sandbox';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { RunAssembly } from './run-assembly.js';
import { type ExecutionEnd, type ExecutionSink, type SandboxDriver, unavailable } from './sandbox-driver.js';

/** Runs each execution in a fresh sandbox, which is destroyed on every path. The caller stores the results. */
export class DrivenSandboxes implements Sandboxes {
  private readonly closing = new AbortController();

  constructor(private readonly driver: SandboxDriver) {}

  execute(request: ExecutionRequest, signal: AbortSignal): Promise<ExecutionResult> {
    if (this.closing.signal.aborted) return Promise.reject(unavailable('the sandboxes are being shut down'));
    return this.run(request, AbortSignal.any([signal, this.closing.signal]));
  }

  close(): void {
    this.closing.abort();
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
