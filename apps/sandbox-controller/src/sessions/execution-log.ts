import { EtudeError } from '@etude/contracts/errors';
import type { Display, RunResult } from '@etude/contracts/sandbox';

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
  new EtudeError('INVALID_ARGUMENT', 'resume_token is of no event of this execution; pass the one of an event, unchanged', {
    field: 'resume_token',
  });

/** What an execution has told so far, for any number of readers, each at its own pace. Bounded by what the supervisor may send: `outputKiB`. */
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
