import type { StopReason, TaskEvent, TaskResult, TaskState, Usage } from '@etude/contracts/task';

/** JSON values only: what comes back after a crash must equal what was returned before it. */
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
}

/**
 * The journal of one rollout, held under one epoch.
 *
 * Every write is one atomic operation: epoch checked, entry stored, events appended, the task's usage updated.
 * @throws EtudeError JOURNAL_FENCED once another worker holds a later epoch; stop at once and write nothing.
 * Not in it: deciding what a step is.
 */
export interface Journal {
  readonly rolloutId: string;
  readonly epoch: number;
  /** Entries that were there when the journal was opened, by key. */
  readonly entries: ReadonlyMap<string, JournalEntry>;
  /** When the rollout first started, ms since 1970; the same after every takeover. */
  readonly startedAt: number;
  /** Answers whether somebody asked to cancel the task. */
  append(entry: JournalEntry, events: readonly TaskEvent[]): Promise<{ cancelRequested: boolean }>;
  /** The last write: the task becomes final and its `finished` event ends every watch. */
  finish(end: RolloutEnd, events: readonly TaskEvent[]): Promise<void>;
}
