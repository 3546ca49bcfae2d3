import { errorCode } from '@etude/contracts/errors';
import type { RolloutRun } from '@etude/contracts/queues';
import type { RolloutDeps } from '@etude/domain/rollout/rollout-context';
import { runRollout } from '@etude/domain/rollout/run-rollout';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import type { CancelBus } from '@etude/queue/tasks/cancel';
import type { TaskStore } from '@etude/queue/tasks/task-store';
import { givesUp, jobError } from './job-errors.js';
import { openRollout, type JournalSource } from './open-rollout.js';
import { stopSignal } from './stop-signal.js';

export interface RolloutRunDeps {
  readonly tasks: TaskStore;
  readonly journals: JournalSource;
  readonly cancels: CancelBus;
  readonly ports: Omit<RolloutDeps, 'journal' | 'givesUp'>;
}

/**
 * Runs one rollout, from wherever an earlier worker left it. A worker that another one has replaced ends quietly.
 *
 * @throws EtudeError WORKER_LOST for a rollout that has lost one worker after another; system errors, retried by the queue
 */
export function rolloutRunProcessor({
  tasks,
  journals,
  cancels,
  ports,
}: RolloutRunDeps): JobHandler<typeof RolloutRun.payload, typeof RolloutRun.result> {
  return async (rollout, job) => {
    try {
      const opened = await openRollout(rollout, tasks, journals);
      if ('outcome' in opened) return opened;
      using stop = stopSignal(rollout, opened, { tasks, cancels, signal: job.signal });
      const deps = { ...ports, journal: opened.journal, givesUp: (error: unknown) => givesUp(error, job) };
      const { state } = await runRollout({ task: opened.task, rolloutId: rollout.rolloutId }, deps, stop.signal);
      return { outcome: state };
    } catch (error) {
      if (errorCode(error) === 'JOURNAL_FENCED') return { outcome: 'fenced' };
      throw jobError(error);
    }
  };
}
