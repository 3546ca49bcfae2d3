import type { Learning, StopReason, TaskEvent, TaskResult, TaskState, Usage } from '@etude/contracts/task';

/** Values are JSON only, so that a value read after a crash equals the one written before it. */
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
  /** The attempts that learning starts from, as JSON. Absent: no learning follows. */
  readonly learnFrom?: readonly object[];
}

/** The key of the entry with `learnFrom`, which is written together with the end of the rollout. */
export const LEARN_FROM = 't.attempts';

/**
 * The journal of one rollout, held by one worker under one epoch.
 *
 * Every write is one atomic operation: it checks the epoch, stores the entry, appends the events and updates the task's usage.
 * @throws EtudeError JOURNAL_FENCED once another worker holds a later epoch; stop at once and write nothing.
 * Not in it: deciding what a step is.
 */
export interface Journal {
  readonly rolloutId: string;
  readonly epoch: number;
  /** Entries by key, as they were when the journal was opened. */
  readonly entries: ReadonlyMap<string, JournalEntry>;
  /** When the rollout first started, in ms since 1970. A takeover doesn't change it. */
  readonly startedAt: number;
  /** Time since then in ms, without waits for answers. A clock that jumps doesn't change it. */
  elapsedMs(): number;
  /** Returns whether somebody asked to cancel the task. */
  append(entry: JournalEntry, events: readonly TaskEvent[]): Promise<{ cancelRequested: boolean }>;
  /** The last write: sets the task's final state, and its `finished` event ends every watch. */
  finish(end: RolloutEnd): Promise<void>;
}

export type LearningEnd = Pick<Learning, 'error'> & { readonly state: 'done' | 'failed' };

/**
 * The journal of the learning that follows a rollout, held by one worker under an epoch of its own. Its entries follow those of the rollout.
 * The task stays final, and no event is sent.
 */
export interface LearningJournal extends Omit<Journal, 'finish'> {
  /** The last write. Its usage is the sum of the entries. */
  finish(end: LearningEnd): Promise<void>;
}

/** A question of a rollout to the task's caller. */
export interface Question {
  /** The step that asks, such as "a1.s3.t1". */
  readonly key: string;
  readonly text: string;
  /** ms since 1970. Without an answer until then, the rollout goes on without one. */
  readonly deadlineAt: number;
}

/**
 * Asks the task's caller.
 *
 * @returns the answer; `expired` after the deadline; null if the question was recorded and is open. Then the rollout must stop with
 * `RolloutWaits`: an answer or the deadline starts it again, and the same call gives the outcome.
 * @throws EtudeError JOURNAL_FENCED
 */
export interface Questions {
  ask(question: Question): Promise<{ readonly answer: string } | 'expired' | null>;
}

/** Leaves a rollout until its caller answers. It ends the job, not the task. */
export class RolloutWaits extends Error {
  /** For traces. */
  readonly isNoFailure = true;

  constructor(readonly question: Question) {
    super(`the rollout waits for the answer to ${question.key}`);
    this.name = 'RolloutWaits';
  }
}
