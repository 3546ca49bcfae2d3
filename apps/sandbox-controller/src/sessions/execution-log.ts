import { EventEmitter, once } from 'node:events';
import { EtudeError } from '@etude/contracts/errors';
import type { Display, RunResult } from '@etude/contracts/sandbox';
import type { CellToolCall } from '@etude/contracts/scratchpad';
import { unmeasuredRun } from '@etude/sandbox/driven-sandboxes';
import type { ExecutionSink, LostSandbox } from '@etude/sandbox/sandbox-driver';

export type ExecutionContent =
  | { readonly kind: 'stdout' | 'stderr'; readonly text: string }
  | { readonly kind: 'display'; readonly display: Display }
  | { readonly kind: 'call'; readonly call: CellToolCall }
  | { readonly kind: 'outcome'; readonly result: RunResult };

/**
 * One event and its place: `at` is the number of the supervisor's frame, `part` the number of the event within the frame. Repeated frames
 * give the same places, also in another controller.
 */
export interface ExecutionEvent {
  readonly at: number;
  readonly part: number;
  readonly content: ExecutionContent;
}

export type EventPlace = Pick<ExecutionEvent, 'at' | 'part'>;

const isBehind = (event: EventPlace, place: EventPlace) => event.at > place.at || (event.at === place.at && event.part > place.part);

/** Longest text of one event, in UTF-16 units. */
const TEXT_MAX = 256 * 1024;

function* pieces(kind: 'stdout' | 'stderr', text: string): Generator<ExecutionContent> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + TEXT_MAX, text.length);
    // Doesn't split a surrogate pair.
    if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1]!)) to -= 1;
    yield { kind, text: text.slice(from, to) };
    from = to;
  }
}

/** The events so far of an execution with one run. Any number of readers may read them, each at its own pace. */
export class ExecutionLog implements ExecutionSink {
  readonly #events: ExecutionEvent[] = [];
  readonly #grown = new EventEmitter().setMaxListeners(0);
  readonly #startedMs = performance.now();
  #ended: { readonly error: Error | null } | null = null;

  /** @param stoppedBy the error to report for a cancel that didn't come from the caller; else undefined */
  constructor(private readonly stoppedBy: () => RunResult['error'] = () => undefined) {}

  get hasOutcome(): boolean {
    return this.#events.at(-1)?.content.kind === 'outcome';
  }

  output(_run: number, stream: 'stdout' | 'stderr', text: string, at: number): void {
    this.#append(at, pieces(stream, text));
  }

  display(_run: number, display: Display, at: number): void {
    this.#append(at, [{ kind: 'display', display }]);
  }

  toolCall(_run: number, call: CellToolCall, at: number): void {
    this.#append(at, [{ kind: 'call', call }]);
  }

  /** Appends the tails of the output before the outcome, which is the last event. */
  result(_run: number, result: RunResult, at: number): void {
    const error = (result.exit === 'cancelled' && this.stoppedBy()) || result.error;
    const outcome = { ...result, stdout: '', stderr: '', ...(error ? { error } : {}) };
    this.#append(at, [...pieces('stdout', result.stdout), ...pieces('stderr', result.stderr), { kind: 'outcome', result: outcome }]);
  }

  /** Appends the outcome of a lost execution. null: the execution was stopped, and the sandbox could not report its outcome. */
  lose(end: LostSandbox | null): void {
    if (this.hasOutcome) return;
    const { error: lost, ...run } = unmeasuredRun(end?.exit ?? 'cancelled', 'SandboxLost', end?.message ?? '');
    const error = end ? lost : this.stoppedBy();
    const result = { ...run, wallMs: performance.now() - this.#startedMs, ...(error ? { error } : {}) };
    this.#append(this.#last.at + 1, [{ kind: 'outcome', result }]);
  }

  /** Ends all readers after the last event. They throw `error` unless it is null. */
  end(error: Error | null = null): void {
    this.#ended ??= { error };
    this.#grown.emit('grown');
  }

  /**
   * Events after `after` (null: all), until the end. A reader that leaves doesn't stop the execution.
   *
   * @throws EtudeError INVALID_ARGUMENT for a place after the end; an AbortError
   */
  async *read(after: EventPlace | null, signal: AbortSignal): AsyncGenerator<ExecutionEvent> {
    for (let next = 0; ; await once(this.#grown, 'grown', { signal })) {
      while (next < this.#events.length) {
        const event = this.#events[next++]!;
        if (!after || isBehind(event, after)) yield event;
      }
      if (this.#ended) break;
    }
    if (this.#ended.error) throw this.#ended.error;
    if (after && isBehind(after, this.#last)) {
      const message = "resume_token doesn't belong to this execution. Pass the token of one of its events, unchanged.";
      throw new EtudeError('INVALID_ARGUMENT', message, { field: 'resume_token' });
    }
  }

  get #last(): EventPlace {
    return this.#events.at(-1) ?? { at: -1, part: 0 };
  }

  #append(at: number, contents: Iterable<ExecutionContent>): void {
    if (this.#ended) return;
    let part = 0;
    for (const content of contents) this.#events.push({ at, part: part++, content });
    this.#grown.emit('grown');
  }
}
