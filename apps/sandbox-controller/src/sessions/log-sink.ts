import type { Display, RunResult } from '@etude/contracts/sandbox';
import type { ExecutionSink, LostSandbox } from '@etude/sandbox/sandbox-driver';
import type { ExecutionContent, ExecutionLog } from './execution-log.js';

/** Most of one event's text, in UTF-16 units. */
const TEXT_MAX = 256 * 1024;

function* pieces(kind: 'stdout' | 'stderr', text: string): Generator<ExecutionContent> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + TEXT_MAX, text.length);
    // A character of two units stays whole.
    if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1]!)) to -= 1;
    yield { kind, text: text.slice(from, to) };
    from = to;
  }
}

/** Writes what a sandbox tells of an execution with one run into its log. */
export class LogSink implements ExecutionSink {
  /** @param stoppedBy why it was cancelled, where its caller didn't do that */
  constructor(
    private readonly log: ExecutionLog,
    private readonly stoppedBy: () => RunResult['error'],
    private readonly startedMs = performance.now(),
  ) {}

  output(_run: number, stream: 'stdout' | 'stderr', text: string, at: number): void {
    this.#append(at, pieces(stream, text));
  }

  display(_run: number, display: Display, at: number): void {
    this.#append(at, [{ kind: 'display', display }]);
  }

  /** The tails come first, so that the outcome is the last event. */
  result(_run: number, result: RunResult, at: number): void {
    const error = (result.exit === 'cancelled' && this.stoppedBy()) || result.error;
    const outcome = { ...result, stdout: '', stderr: '', ...(error ? { error } : {}) };
    this.#append(at, [...pieces('stdout', result.stdout), ...pieces('stderr', result.stderr), { kind: 'outcome', result: outcome }]);
  }

  /** The sandbox ended under it. */
  lose({ exit, message }: LostSandbox): void {
    this.#close(exit, { type: 'SandboxLost', message, line: null });
  }

  /** It was stopped, and the sandbox had no time to say how that went. */
  cancel(): void {
    this.#close('cancelled', this.stoppedBy());
  }

  #close(exit: RunResult['exit'], error?: RunResult['error']): void {
    if (this.log.hasOutcome) return;
    const none = { exitCode: null, signal: null, stdout: '', stderr: '', stdoutCutBytes: 0, stderrCutBytes: 0, cpuMs: 0, memoryPeakKiB: 0 };
    const wallMs = performance.now() - this.startedMs;
    const result: RunResult = { ...none, exit, wallMs, ...(error ? { error } : {}) };
    this.#append(this.log.last.at + 1, [{ kind: 'outcome', result }]);
  }

  #append(at: number, contents: Iterable<ExecutionContent>): void {
    let part = 0;
    for (const content of contents) this.log.append({ at, part: part++, content });
  }
}
