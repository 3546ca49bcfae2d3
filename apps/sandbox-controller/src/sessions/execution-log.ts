import { EtudeError } from '@etude/contracts/errors';
import type { Display, RunResult } from '@etude/contracts/sandbox';
import type { ExecutionSink, LostSandbox } from '@etude/sandbox/sandbox-driver';

export type ExecutionContent =
  | { readonly kind: 'stdout' | 'stderr'; readonly text: string }
  | { readonly kind: 'display'; readonly display: Display }
  | { readonly kind: 'outcome'; readonly result: RunResult };

/**
 * One event and its place: `at` is the supervisor's frame, `part` counts the events that one frame made. The same frames make the
 * same places, also when they are told again to another controller.
 */
export interface ExecutionEvent {
  readonly at: number;
  readonly part: number;
  readonly content: ExecutionContent;
}

export type EventPlace = Pick<ExecutionEvent, 'at' | 'part'>;

const isBehind = (event: EventPlace, place: EventPlace) => event.at > place.at || (event.at === place.at && event.part > place.part);

const bytesOf = (content: ExecutionContent): number =>
  content.kind === 'stdout' || content.kind === 'stderr' ? content.text.length : JSON.stringify(content).length;

const beyondEnd = () =>
  new EtudeError('INVALID_ARGUMENT', "resume_token doesn't belong to this execution. Pass the token of one of its events, unchanged.", {
    field: 'resume_token',
  });

/** The events of an execution so far, for any number of readers, each at its own pace. `outputKiB` bounds their size. */
export class ExecutionLog {
  readonly #events: ExecutionEvent[] = [];
  readonly #waiting = new Set<() => void>();
  #ended: { readonly error: Error | null } | null = null;
  bytes = 0;

  append(event: ExecutionEvent): void {
    if (this.#ended) return;
    this.#events.push(event);
    this.bytes += bytesOf(event.content);
    this.#wake();
  }

  /** Readers end behind the last event, with `error` where it is not null. */
  end(error: Error | null = null): void {
    this.#ended ??= { error };
    this.#wake();
  }

  get ended(): boolean {
    return this.#ended !== null;
  }

  get hasOutcome(): boolean {
    return this.#events.at(-1)?.content.kind === 'outcome';
  }

  /** Place of the last event. */
  get last(): EventPlace {
    return this.#events.at(-1) ?? { at: -1, part: 0 };
  }

  /**
   * Events behind `after` (null: all), until the end. Leaving stops nothing.
   *
   * @throws EtudeError INVALID_ARGUMENT for a place behind the end; the reason of `signal`
   */
  async *read(after: EventPlace | null, signal: AbortSignal): AsyncGenerator<ExecutionEvent> {
    let next = after ? this.#events.findIndex((event) => isBehind(event, after)) : 0;
    // All there is was seen: what comes is behind it.
    if (next < 0) next = this.#events.length;
    for (;;) {
      while (next < this.#events.length) {
        const event = this.#events[next++]!;
        if (!after || isBehind(event, after)) yield event;
      }
      if (this.#ended) break;
      await this.#grown(signal);
    }
    if (this.#ended.error) throw this.#ended.error;
    if (after && isBehind(after, this.last)) throw beyondEnd();
  }

  #grown(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const settle = () => {
        this.#waiting.delete(settle);
        signal.removeEventListener('abort', settle);
        if (signal.aborted) reject(signal.reason as Error);
        else resolve();
      };
      signal.addEventListener('abort', settle, { once: true });
      this.#waiting.add(settle);
    });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Logs of finished executions of all sessions. The oldest go when all together pass `bytesMax`. */
export class FinishedLogs {
  readonly #logs = new Map<ExecutionLog, () => void>();
  #bytes = 0;

  constructor(private readonly bytesMax: number) {}

  /** @param forget called when the log has to go; the sandbox can still tell it again */
  keep(log: ExecutionLog, forget: () => void): void {
    this.#logs.set(log, forget);
    this.#bytes += log.bytes;
    for (const [oldest, drop] of this.#logs) {
      if (this.#bytes <= this.bytesMax) return;
      this.#remove(oldest);
      drop();
    }
  }

  /** With its session. */
  drop(log: ExecutionLog): void {
    if (this.#logs.has(log)) this.#remove(log);
  }

  #remove(log: ExecutionLog): void {
    this.#logs.delete(log);
    this.#bytes -= log.bytes;
  }
}

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

/** Writes the events of an execution with one run into its log. */
export class LogSink implements ExecutionSink {
  /** @param stoppedBy the reason of a cancel that didn't come from the caller */
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
