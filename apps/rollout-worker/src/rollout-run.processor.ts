import { type ErrorCode, errorCode, EtudeError, isAbort, isRetryable } from '@etude/contracts/errors';
import type { RolloutLearn, RolloutRun } from '@etude/contracts/queues';
import { isFinal, type TaskRecord } from '@etude/contracts/task';
import { type RolloutEnd, RolloutWaits } from '@etude/domain/ports/journal';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { RolloutDeps } from '@etude/domain/rollout/rollout-context';
import { RolloutStop } from '@etude/domain/rollout/durable-steps';
import { runRollout } from '@etude/domain/rollout/run-rollout';
import { counter } from '@etude/platform/metrics';
import type { JobContext, JobHandler } from '@etude/queue/jobs/consumer';
import type { RedisKeys, RolloutAddress } from '@etude/queue/redis/keys';
import type { connectRedis, QueueLogger } from '@etude/queue/redis/redis';
import { watchCancel } from '@etude/queue/redis/channels';
import { openJournal, openLearning, questionsOf, type RedisJournal } from '@etude/queue/tasks/journal';
import { TextPublisher } from '@etude/queue/tasks/events';
import type { TaskStore } from '@etude/queue/tasks/task-store';
import { type Tracing, UNTRACED } from '@etude/contracts/tracing';
import { learnFromRollout, type LearningDeps } from '@etude/domain/rollout/learn-from-rollout';

const rollouts = counter({ name: 'etude_rollouts_total', help: 'Rollouts that ended, by state and reason', labels: ['state', 'reason'] });

interface RolloutRunDeps {
  readonly tasks: TaskStore;
  readonly journals: {
    /** This connection waits while Redis is unreachable, because a finished step must be written. */
    readonly redis: ReturnType<typeof connectRedis>;
    readonly keys: RedisKeys;
    readonly retentionMs: number;
  };
  readonly ports: Omit<RolloutDeps, 'journal' | 'questions' | 'liveText' | 'givesUp'>;
  readonly logger: QueueLogger;
}

/**
 * Runs one rollout, from the point where an earlier worker stopped. The job ends without an error if another worker has taken the rollout
 * over, or if the rollout waits for the task's caller.
 *
 * @throws EtudeError WORKER_LOST if the rollout lost too many workers; system errors, which the queue retries
 */
export function rolloutRunProcessor({
  tasks,
  journals,
  ports,
  logger,
}: RolloutRunDeps): JobHandler<typeof RolloutRun.payload, typeof RolloutRun.result> {
  return async (rollout, job) => {
    const { tenant, taskId, rolloutId } = rollout;
    try {
      using stop = stopSignal(rollout, { tasks, journals, job });
      const opening = openJournal(journals.redis, journals.keys, rollout, journals);
      const [journal, task] = await Promise.all([opening, tasks.get(tenant, taskId), stop.watching]);
      if (journal === null || task === null) return { outcome: outcomeOf(task) };
      if (journal.epoch > EPOCHS_MAX) throw await giveUp(journal);
      stop.endIn(task.spec.limits.wallMs - journal.elapsedMs());
      const text = new TextPublisher(journals.redis, journals.keys.text(tenant, taskId));
      const append: RedisJournal['append'] = (...step) => {
        // Sends the model's text first, so that watchers get it before the step's event.
        text.flush();
        return stop.afterStep(journal.append(...step));
      };
      const deps = {
        ...ports,
        sandboxes: untilDraining(ports.sandboxes, job),
        journal: { ...journal, append },
        questions: questionsOf(journal),
        liveText: text.add,
        givesUp: (error: unknown) => givesUp(error, job),
      };
      const named = { tenant, taskId, rolloutId, epoch: journal.epoch };
      logger.info({ ...named, state: 'running' }, 'A rollout has started');
      const { findSecrets } = await import('@etude/analysis/find-secrets');
      const secrets = findSecrets(task.spec.prompt).map(({ rule, line }) => `${rule} in line ${line}`);
      // The task may be about the secrets, so the model still sees them.
      if (secrets.length > 0)
        logger.warn({ ...named, secrets }, 'The task holds secrets. The model sees them, and memory keeps them masked');
      const { state, stopReason, usage, error, learnFrom } = await traced(task, deps, () =>
        runRollout({ task, rolloutId }, deps, stop.signal),
      );
      if (learnFrom !== undefined) await tasks.startLearning(rollout);
      const { attempts, modelCalls } = usage;
      const ms = Math.round(journal.elapsedMs());
      logger.info({ ...named, state, stopReason, attempts, modelCalls, ms, errorCode: error?.code }, 'A rollout has ended');
      rollouts.inc({ state, reason: stopReason });
      return { outcome: state };
    } catch (error) {
      if (error instanceof RolloutWaits) {
        logger.info({ tenant, taskId, rolloutId, state: 'input_required' }, 'A rollout waits for its caller');
        return { outcome: 'waiting' };
      }
      if (errorCode(error) === 'JOURNAL_FENCED') return { outcome: 'fenced' };
      const failed = { tenant, taskId, rolloutId, state: 'failed', errorCode: errorCode(error) };
      if (givesUp(error, job)) {
        logger.info(failed, 'A rollout has ended');
        rollouts.inc({ state: 'failed', reason: 'error' });
      }
      throw error;
    }
  };
}

/** Stops waiting for an execution when the worker drains. The next worker gets the result. Why: two draining services could block each other. */
const untilDraining = (sandboxes: Sandboxes, { draining }: Pick<JobContext, 'draining'>): Sandboxes => ({
  execute: (request, signal) => sandboxes.execute(request, AbortSignal.any([signal, draining])),
});

/** Runs a rollout within a span, which follows OpenTelemetry's conventions for GenAI agents. */
function traced(
  { id, tenant, spec }: TaskRecord,
  { tracing = UNTRACED, journal }: { tracing?: Tracing; journal: RedisJournal },
  run: () => Promise<RolloutEnd>,
) {
  const values = {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': spec.agent,
    'gen_ai.conversation.id': id,
    'etude.tenant': tenant,
    'etude.epoch': journal.epoch,
  };
  return tracing.span(`invoke_agent ${spec.agent}`, { values }, async (span) => {
    span.setContent(() => ({
      'gen_ai.input.messages': JSON.stringify([{ role: 'user', parts: [{ type: 'text', content: spec.prompt }] }]),
    }));
    const end = await run();
    const { inputTokens, outputTokens } = end.usage;
    span.set({ 'gen_ai.usage.input_tokens': inputTokens, 'gen_ai.usage.output_tokens': outputTokens });
    span.set({ 'etude.state': end.state, 'etude.stop_reason': end.stopReason });
    return end;
  });
}

/** The outcome of a job if its rollout needn't be run. */
function outcomeOf(task: TaskRecord | null) {
  if (task?.state === 'input_required') return 'waiting';
  return task && isFinal(task.state) ? task.state : 'fenced';
}

/** If a rollout was taken over more often than this, it probably crashes its workers. */
const EPOCHS_MAX = 20;

/** Marks the task as failed. @returns the error with which the job ends */
async function giveUp(journal: RedisJournal): Promise<EtudeError> {
  const message = `Rollout ${journal.rolloutId} was started ${journal.epoch} times and never ended. Find out from the logs why its workers died, then run "etude queues redrive".`;
  await journal.finish({
    state: 'failed',
    stopReason: 'error',
    result: null,
    usage: journal.usage,
    error: { code: 'WORKER_LOST', message },
  });
  return new EtudeError('WORKER_LOST', message);
}

type Signals = Pick<JobContext, 'signal' | 'draining'>;

/**
 * Makes a signal that aborts if the task is cancelled, if its wall time is over, or if the job's signal aborts after a shutdown or a lost
 * lock. After `watching` resolves, no cancellation is missed. `endIn` sets the remaining wall time, in ms. `afterStep` waits until a step is
 * written, and then aborts if the worker is draining.
 */
function stopSignal(
  { tenant, taskId }: RolloutAddress,
  { tasks, journals: { redis, keys }, job }: Pick<RolloutRunDeps, 'tasks' | 'journals'> & { readonly job: Signals },
) {
  const stop = new AbortController();
  const cancel = () => stop.abort(new RolloutStop('cancelled'));
  const watching = watchCancel(redis, keys.cancel(tenant, taskId), () => tasks.cancelRequested(tenant, taskId), cancel);
  let timer: NodeJS.Timeout | undefined;
  return {
    signal: AbortSignal.any([job.signal, stop.signal]),
    watching: watching.ready,
    async afterStep<T>(written: Promise<T>): Promise<T> {
      const answer = await written;
      if (job.draining.aborted) stop.abort(job.draining.reason);
      return answer;
    },
    endIn(ms: number) {
      timer = setTimeout(() => stop.abort(new RolloutStop('wall_time')), Math.max(0, ms));
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      watching[Symbol.dispose]();
    },
  };
}

/** After these errors the rollout goes on later, even if the job has no attempts left. */
const GOES_ON: ReadonlySet<ErrorCode> = new Set(['JOURNAL_FENCED', 'QUEUE_UNAVAILABLE']);

/** Whether the task fails with this error, because the queue won't retry the job. */
export function givesUp(error: unknown, job: { readonly isLastAttempt: boolean; readonly signal: AbortSignal }): boolean {
  if (job.signal.aborted || isAbort(error) || error instanceof RolloutWaits) return false;
  if (GOES_ON.has(errorCode(error))) return false;
  return job.isLastAttempt || !isRetryable(error);
}

interface RolloutLearnDeps extends Omit<RolloutRunDeps, 'ports'> {
  readonly ports: Omit<LearningDeps, 'journal' | 'givesUp'>;
}

/** Learns from one ended rollout, from where an earlier worker stopped. The task isn't changed. @throws system errors, which the queue retries */
export function rolloutLearnProcessor({
  ports,
  logger,
  ...deps
}: RolloutLearnDeps): JobHandler<typeof RolloutLearn.payload, typeof RolloutLearn.result> {
  const { tasks, journals } = deps;
  return async (rollout, job) => {
    try {
      const { tenant, taskId, rolloutId } = rollout;
      using stop = stopSignal(rollout, { ...deps, job });
      const opening = openLearning(journals.redis, journals.keys, rollout);
      const [journal, task] = await Promise.all([opening, tasks.get(tenant, taskId), stop.watching]);
      if (journal === null || task === null) return { outcome: 'over' };
      stop.endIn(ports.limits.wallMs - journal.elapsedMs());
      const append: typeof journal.append = (...step) => stop.afterStep(journal.append(...step));
      const learning = { ...ports, journal: { ...journal, append }, givesUp: (error: unknown) => givesUp(error, job) };
      const { state, error } = await learnFromRollout({ task, rolloutId }, learning, stop.signal);
      logger.info({ tenant, taskId, rolloutId, epoch: journal.epoch, state, errorCode: error?.code }, 'Learning from a rollout has ended');
      return { outcome: state };
    } catch (error) {
      if (error instanceof RolloutStop || errorCode(error) === 'JOURNAL_FENCED') return { outcome: 'over' };
      throw error;
    }
  };
}
