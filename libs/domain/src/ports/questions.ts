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
