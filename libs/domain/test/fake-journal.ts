import { EtudeError } from '@etude/contracts/errors';
import { isFinal, Usage } from '@etude/contracts/task';
import type { TaskEvent, TaskState } from '@etude/contracts/task';
import type { Journal, JournalEntry, RolloutEnd } from '../src/ports/journal.js';

/** The task of a fake rollout, as callers see it. */
export interface FakeTask {
  readonly state: TaskState;
  readonly usage: Usage;
  readonly end: RolloutEnd | null;
}

/**
 * One rollout's journal in memory. Each opening stands for a worker that takes the rollout over.
 * Values go through JSON, as in a real journal.
 */
export class FakeJournalStore {
  /** Every event of the task, in order. */
  readonly events: TaskEvent[] = [{ type: 'state', state: 'queued' }];
  readonly #entries = new Map<string, JournalEntry>();
  #task: FakeTask = { state: 'queued', usage: Usage.parse({}), end: null };
  #epoch = 0;
  #cancelRequested = false;

  constructor(
    readonly rolloutId = 't00000000-r1',
    private readonly startedAt = 0,
  ) {}

  get task(): FakeTask {
    return this.#task;
  }

  /** null when the task is final. */
  open(): Journal | null {
    if (isFinal(this.#task.state)) return null;
    const epoch = ++this.#epoch;
    if (this.#task.state !== 'running') this.events.push({ type: 'state', state: 'running' });
    if (epoch > 1) this.events.push({ type: 'worker', epoch });
    this.#task = { ...this.#task, state: 'running' };
    return {
      rolloutId: this.rolloutId,
      epoch,
      startedAt: this.startedAt,
      entries: new Map(this.#entries),
      append: async (entry, events) => this.#append(epoch, entry, events),
      finish: async (end) => this.#finish(epoch, end),
    };
  }

  /** Requests cancellation; the next `append` reports the request. */
  cancel(): void {
    this.#cancelRequested = true;
  }

  #append(epoch: number, entry: JournalEntry, events: readonly TaskEvent[]): { cancelRequested: boolean } {
    if (isFinal(this.#task.state)) throw fenced(this.rolloutId, epoch);
    this.#check(epoch);
    if (!this.#entries.has(entry.key)) {
      this.#entries.set(entry.key, asJson({ ...entry, value: entry.value ?? null }));
      this.events.push(...asJson(events));
      this.#task = { ...this.#task, usage: entry.usage };
    }
    return { cancelRequested: this.#cancelRequested };
  }

  #finish(epoch: number, end: RolloutEnd): void {
    this.#check(epoch);
    if (isFinal(this.#task.state)) return;
    this.events.push({ type: 'state', state: end.state }, { type: 'finished' });
    this.#task = { state: end.state, usage: end.usage, end: asJson(end) };
  }

  #check(epoch: number): void {
    if (epoch !== this.#epoch) throw fenced(this.rolloutId, epoch);
  }
}

function fenced(rolloutId: string, epoch: number): EtudeError {
  return new EtudeError('JOURNAL_FENCED', `rollout ${rolloutId}: epoch ${epoch} is over`);
}

function asJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
