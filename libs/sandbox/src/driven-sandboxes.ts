import type { Display, ExecutionRequest, ExecutionResult, ExitReason, RunResult } from '@etude/contracts/sandbox';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import { type ExecutionSink, type LostSandbox, type SandboxDriver, unavailable } from './sandbox-driver.js';

/** Runs each execution in a fresh sandbox, which is destroyed on every path. The caller stores the results. */
export class DrivenSandboxes implements Sandboxes {
  private readonly closing = new AbortController();

  constructor(
    private readonly driver: SandboxDriver,
    private readonly tracing: Tracing = UNTRACED,
  ) {}

  async execute(request: ExecutionRequest, callerSignal: AbortSignal): Promise<ExecutionResult> {
    if (this.closing.signal.aborted) throw unavailable('the sandboxes are being shut down');
    const signal = AbortSignal.any([callerSignal, this.closing.signal]);
    const assembly = new RunAssembly();
    while (assembly.results.length < request.runs.length) {
      const left = { ...request, runs: request.runs.slice(assembly.results.length) };
      const lost = await this.tracing.span('sandbox.run', {}, async (span) => {
        span.setContent(() => ({ 'etude.runs': JSON.stringify(left.runs) }));
        return this.runInOne(left, assembly, signal);
      });
      if (!lost) break;
      assembly.lose(lost);
      // The exit kernel_lost means that this run attacked its supervisor. The runs after it continue in another sandbox.
      if (lost.exit !== 'kernel_lost' || request.stopOnFailure) break;
    }
    return { executionId: request.executionId, runs: assembly.results };
  }

  close(): void {
    this.closing.abort();
  }

  private async runInOne(request: ExecutionRequest, sink: ExecutionSink, signal: AbortSignal): Promise<LostSandbox | null> {
    const { memoryMiB, diskMiB } = request.limits;
    const sandbox = await this.driver.claim({ template: request.template ?? 'default', memoryMiB, diskMiB }, signal);
    try {
      return await sandbox.execute(request, sink, signal);
    } finally {
      // Not awaited, so that the result is not delayed.
      void sandbox.release();
    }
  }
}

const nothing = () => ({ stdout: '', stderr: '', displays: [] as Display[] });

export const unmeasuredRun = (exit: ExitReason, type: string, message: string): RunResult => ({
  exit,
  exitCode: null,
  signal: null,
  stdout: '',
  stderr: '',
  stdoutCutBytes: 0,
  stderrCutBytes: 0,
  cpuMs: 0,
  wallMs: 0,
  memoryPeakKiB: 0,
  error: { type, message, line: null },
});

/** Assembles whole results from the pieces that an execution reports. */
export class RunAssembly implements ExecutionSink {
  readonly results: RunResult[] = [];
  private partial = nothing();

  output(stream: 'stdout' | 'stderr', text: string): void {
    this.partial[stream] += text;
  }

  display(data: Display): void {
    this.partial.displays.push(data);
  }

  result(result: RunResult): void {
    const { stdout, stderr, displays } = this.partial;
    const shown = displays.length > 0 ? { displays } : {};
    this.results.push({ ...result, stdout: stdout + result.stdout, stderr: stderr + result.stderr, ...shown });
    this.partial = nothing();
  }

  /** Ends the current run as lost, with the output it had. Results of another sandbox may follow. */
  lose({ exit, message }: LostSandbox): void {
    this.result(unmeasuredRun(exit, 'SandboxLost', message));
  }
}
