import { EventEmitter, once } from 'node:events';
import { EtudeError } from '@etude/contracts/errors';
import type { Display, RunResult } from '@etude/contracts/sandbox';
import type { CellToolCall } from '@etude/contracts/scratchpad';
import { unmeasuredRun } from '@etude/sandbox/driven-sandboxes';
import type { ExecutionSink, LostSandbox } from '@etude/sandbox/sandbox-driver';

export type ExecutionEvent =
  | { readonly kind: 'stdout' | 'stderr'; readonly text: string }
  | { readonly kind: 'display'; readonly display: Display }
  | { readonly kind: 'call'; readonly call: CellToolCall }
  | { readonly kind: 'outcome'; readonly result: RunResult };

/** Longest text of one event, in UTF-16 units. */
const TEXT_MAX = 256 * 1024;

/** The events so far of an execution with one run, for any number of readers. An event has the same number in every controller. */
export class ExecutionLog implements ExecutionSink {
  readonly #events: ExecutionEvent[] = [];
  readonly #grown = new EventEmitter().setMaxListeners(0);
  #ended: { readonly error: Error | null } | null = null;

  get hasOutcome(): boolean {
    return this.#events.at(-1)?.kind === 'outcome';
  }

  output(kind: 'stdout' | 'stderr', text: string): void {
    for (let from = 0; from < text.length;) {
      let to = Math.min(from + TEXT_MAX, text.length);
      // Doesn't split a surrogate pair.
      if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1]!)) to -= 1;
      this.#append({ kind, text: text.slice(from, to) });
      from = to;
    }
  }

  display(display: Display): void {
    this.#append({ kind: 'display', display });
  }

  toolCall(call: CellToolCall): void {
    this.#append({ kind: 'call', call });
  }

  /** Appends the tails of stdout and stderr, and then the outcome, which is the last event. */
  result(result: RunResult): void {
    this.output('stdout', result.stdout);
    this.output('stderr', result.stderr);
    this.#append({ kind: 'outcome', result: { ...result, stdout: '', stderr: '' } });
  }

  /** Appends an outcome for an execution whose sandbox can't report one: because it was lost, or (null) because it was stopped. */
  lose(end: LostSandbox | null): void {
    if (this.hasOutcome) return;
    const { error, ...run } = unmeasuredRun(end?.exit ?? 'cancelled', 'SandboxLost', end?.message ?? '');
    this.result({ ...run, ...(end ? { error } : {}) });
  }

  /** Ends all readers after the last event. They throw `error` unless it is null. */
  end(error: Error | null = null): void {
    this.#ended ??= { error };
    this.#grown.emit('grown');
  }

  /**
   * The events after the first `seen` ones, until the end. A reader that leaves doesn't stop the execution.
   *
   * @throws EtudeError INVALID_ARGUMENT if the execution has fewer events; the error given to `end`; AbortError when `signal` aborts
   */
  async *read(seen: number, signal: AbortSignal): AsyncGenerator<ExecutionEvent> {
    for (let next = seen; ; await once(this.#grown, 'grown', { signal })) {
      while (next < this.#events.length) yield this.#events[next++]!;
      if (this.#ended) break;
    }
    if (this.#ended.error) throw this.#ended.error;
    if (seen > this.#events.length) {
      const message = "resume_token doesn't belong to this execution. Pass the token of one of its events, unchanged.";
      throw new EtudeError('INVALID_ARGUMENT', message, { field: 'resume_token' });
    }
  }

  #append(event: ExecutionEvent): void {
    if (this.#ended) return;
    this.#events.push(event);
    this.#grown.emit('grown');
  }
}
