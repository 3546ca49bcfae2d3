import type { Display, ExitReason, RunResult } from '@etude/contracts/sandbox';
import type { ExecutionSink, LostSandbox } from './sandbox-driver.js';

interface Partial {
  stdout: string;
  stderr: string;
  readonly displays: Display[];
  readonly startedMs: number;
}

const nothing = (): Partial => ({ stdout: '', stderr: '', displays: [], startedMs: performance.now() });

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

/** Assembles whole results from the pieces that an execution reports. A lost run keeps the output it had. */
export class RunAssembly implements ExecutionSink {
  readonly results: RunResult[] = [];
  private partial = nothing();

  /** The sink for the next sandbox of the execution. It numbers its runs from 0 again; runs come in order, so the numbers are ignored. */
  behind(): ExecutionSink {
    this.partial = nothing();
    return this;
  }

  output(_run: number, stream: 'stdout' | 'stderr', text: string): void {
    this.partial[stream] += text;
  }

  display(_run: number, data: Display): void {
    this.partial.displays.push(data);
  }

  result(_run: number, result: RunResult): void {
    const { stdout, stderr, displays } = this.partial;
    const shown = displays.length > 0 ? { displays } : {};
    this.results.push({ ...result, stdout: stdout + result.stdout, stderr: stderr + result.stderr, ...shown });
    this.partial = nothing();
  }

  /** Ends the current run as lost, with the output it had. */
  lose({ exit, message }: LostSandbox): void {
    const { stdout, stderr, displays, startedMs } = this.partial;
    const shown = displays.length > 0 ? { displays } : {};
    this.results.push({ ...unmeasuredRun(exit, 'SandboxLost', message), stdout, stderr, wallMs: performance.now() - startedMs, ...shown });
    this.partial = nothing();
  }
}
