import { EtudeError } from '@etude/contracts/errors';
import { isFinal, type Learning, Usage } from '@etude/contracts/task';
import type { TaskEvent, TaskState } from '@etude/contracts/task';
import type { Journal, JournalEntry, LearningEnd, LearningJournal, RolloutEnd } from '../src/ports/journal.js';
import { LEARN_FROM } from '../src/ports/journal.js';

const NO_USAGE = Usage.parse({});
const NOT_LEARNING: Learning = { state: 'none', usage: NO_USAGE, error: null };

/** The task of a fake rollout, as callers see it. */
export interface FakeTask {
  readonly state: TaskState;
  readonly usage: Usage;
  readonly end: RolloutEnd | null;
  readonly learning: Learning;
}

/**
 * One rollout's journal in memory. Each opening stands for a worker that takes over the rollout.
 * Values are converted to JSON and back, as in a real journal.
 */
export class FakeJournalStore {
  readonly events: TaskEvent[] = [{ type: 'state', state: 'queued' }];
  readonly #entries = new Map<string, JournalEntry>();
  #task: FakeTask = { state: 'queued', usage: NO_USAGE, end: null, learning: NOT_LEARNING };
  #epoch = 0;
  #cancelRequested = false;

  constructor(
    readonly rolloutId = 't00000000-r1',
    private readonly startedAt = 0,
    private readonly now = () => startedAt,
  ) {}

  get task(): FakeTask {
    return this.#task;
  }

  /** Returns null if the task is in its final state. */
  open(): Journal | null {
    if (isFinal(this.#task.state)) return null;
    const epoch = ++this.#epoch;
    if (this.#task.state !== 'running') this.events.push({ type: 'state', state: 'running' });
    if (epoch > 1) this.events.push({ type: 'worker', epoch });
    this.#task = { ...this.#task, state: 'running' };
    return {
      ...this.#opened(epoch),
      append: async (entry, events) => this.#append(epoch, entry, events),
      finish: async (end) => this.#finish(epoch, end),
    };
  }

  /** Returns null unless learning is pending. */
  openLearning(): LearningJournal | null {
    if (this.#task.learning.state !== 'pending') return null;
    const epoch = ++this.#epoch;
    const write = (learning: Partial<Learning>) => void (this.#task = { ...this.#task, learning: { ...this.#task.learning, ...learning } });
    const check = () => {
      this.#check(epoch);
      if (this.#task.learning.state !== 'pending') throw fenced(this.rolloutId, epoch);
    };
    return {
      ...this.#opened(epoch),
      append: async (entry) => {
        check();
        if (this.#entries.has(entry.key)) return { cancelRequested: false };
        this.#entries.set(entry.key, asJson(entry));
        write({ usage: entry.usage });
        return { cancelRequested: false };
      },
      finish: async (end: LearningEnd) => {
        check();
        write(end);
      },
    };
  }

  get entries(): readonly JournalEntry[] {
    return [...this.#entries.values()];
  }

  /** Requests cancellation. The result of the next `append` says so. */
  cancel(): void {
    this.#cancelRequested = true;
  }

  #opened(epoch: number) {
    const { rolloutId, startedAt } = this;
    return { rolloutId, epoch, startedAt, elapsedMs: () => this.now() - startedAt, entries: new Map(this.#entries) };
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
    const { learnFrom } = end;
    if (learnFrom !== undefined) this.#entries.set(LEARN_FROM, asJson({ key: LEARN_FROM, value: learnFrom, usage: NO_USAGE }));
    const learning: Learning = { ...NOT_LEARNING, state: learnFrom === undefined ? 'none' : 'pending' };
    this.#task = { state: end.state, usage: end.usage, end: asJson(end), learning };
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
