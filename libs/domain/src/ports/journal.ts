import type { Learning, StopReason, TaskEvent, TaskResult, TaskState, Usage } from '@etude/contracts/task';

/** A journaled step. Its value is JSON, so that a value read after a crash equals the written one. */
export interface JournalEntry {
  readonly key: string;
  readonly value: unknown;
  readonly usage: Usage;
}

export interface RolloutEnd {
  readonly state: Extract<TaskState, 'succeeded' | 'failed' | 'cancelled'>;
  readonly stopReason: StopReason;
  readonly result: TaskResult | null;
  readonly usage: Usage;
  readonly error: { code: string; message: string } | null;
  /** The attempts from which learning starts, as JSON. Absent if no learning follows. */
  readonly learnFrom?: readonly object[];
}

/** Key of the journal entry that holds `learnFrom`. It is written together with the end of the rollout. */
export const LEARN_FROM = 't.attempts';

/**
 * The journal of one rollout, held by one worker under one epoch.
 *
 * Every write is one atomic operation. It checks the epoch, stores the entry, appends the events and updates the task's usage.
 * The caller decides what counts as a step.
 * @throws EtudeError JOURNAL_FENCED if another worker holds a later epoch; this worker must then stop at once and write nothing.
 */
export interface Journal {
  readonly rolloutId: string;
  readonly epoch: number;
  /** The entries by key, as they were when this worker opened the journal. */
  readonly entries: ReadonlyMap<string, JournalEntry>;
  /** The first start of the rollout, in ms since 1970. It stays the same when another worker takes over. */
  readonly startedAt: number;
  /** Time since `startedAt` in ms, without waits for answers of the caller. It doesn't jump if the system's clock jumps. */
  elapsedMs(): number;
  /** Writes a step's entry and its events. The result says whether somebody asked to cancel the task. */
  append(entry: JournalEntry, events: readonly TaskEvent[]): Promise<{ cancelRequested: boolean }>;
  /** Writes the end of the rollout: the task's final state, and the event `finished`, which ends every watch. */
  finish(end: RolloutEnd): Promise<void>;
}

export type LearningEnd = Pick<Learning, 'error'> & { readonly state: 'done' | 'failed' };

/** The journal of the learning that follows a rollout. It has its own epoch. The task stays in its final state, and no event is sent. */
export interface LearningJournal extends Omit<Journal, 'finish'> {
  /** Writes the end of the learning. The stored usage is the sum of the entries. */
  finish(end: LearningEnd): Promise<void>;
}

export interface Question {
  /** Key of the step that asks, such as "a1.s3.t1". */
  readonly key: string;
  readonly text: string;
  /** Time in ms since 1970. If there is no answer by then, the rollout goes on without one. */
  readonly deadlineAt: number;
}

/**
 * Asks the task's caller.
 *
 * @returns the answer; `expired` after the deadline; null if the question is recorded and still open. If null is returned, the rollout must throw
 *   `RolloutWaits`. An answer or the deadline starts the rollout again, and then the same call returns the outcome.
 * @throws EtudeError JOURNAL_FENCED
 */
export interface Questions {
  ask(question: Question): Promise<{ readonly answer: string } | 'expired' | null>;
}

/** Thrown to pause a rollout until its caller answers. It ends the job, but not the task. */
export class RolloutWaits extends Error {
  /** Traces don't show this error as a failure. */
  readonly isNoFailure = true;

  constructor(readonly question: Question) {
    super(`the rollout waits for the answer to ${question.key}`);
    this.name = 'RolloutWaits';
  }
}
