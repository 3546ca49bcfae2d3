import { errorCode } from '@etude/contracts/errors';
import type { RolloutLearn } from '@etude/contracts/queues';
import { RolloutStop } from '@etude/domain/rollout/durable-steps';
import { type LearningDeps, learnFromRollout } from '@etude/domain/rollout/learn-from-rollout';
import type { JobHandler } from '@etude/queue/jobs/consumer';
import { openLearning } from '@etude/queue/tasks/journal';
import { givesUp, jobError, type RolloutRunDeps, stopSignal } from './rollout-run.processor.js';

interface RolloutLearnDeps extends Omit<RolloutRunDeps, 'ports'> {
  readonly ports: Omit<LearningDeps, 'journal' | 'givesUp'>;
}

/**
 * Learns from one ended rollout, from the point where an earlier worker left it. The task stays as it ended, whatever happens here.
 *
 * @throws system errors, retried by the queue
 */
export function rolloutLearnProcessor({
  ports,
  logger,
  ...deps
}: RolloutLearnDeps): JobHandler<typeof RolloutLearn.payload, typeof RolloutLearn.result> {
  const { tasks, journals } = deps;
  return async (rollout, job) => {
    try {
      const { tenant, taskId, rolloutId } = rollout;
      using stop = stopSignal(rollout, { ...deps, signal: job.signal });
      const opening = openLearning(journals.redis, journals.keys, rollout);
      const [journal, task] = await Promise.all([opening, tasks.get(tenant, taskId), stop.watching]);
      if (journal === null || task === null) return { outcome: 'over' };
      stop.endAt(journal.startedAt + ports.limits.wallMs);
      const learning = { ...ports, journal, givesUp: (error: unknown) => givesUp(error, job) };
      const { state, error } = await learnFromRollout({ task, rolloutId }, learning, stop.signal);
      logger.info({ tenant, taskId, rolloutId, epoch: journal.epoch, state, code: error?.code }, 'Learning from a rollout has ended');
      return { outcome: state };
    } catch (error) {
      if (error instanceof RolloutStop || errorCode(error) === 'JOURNAL_FENCED') return { outcome: 'over' };
      throw jobError(error);
    }
  };
}
