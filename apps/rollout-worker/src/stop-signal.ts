import { cancelledByCaller, wallTimeOver } from '@etude/domain/rollout/rollout-stop';
import type { CancelBus } from '@etude/queue/tasks/cancel';
import type { TaskStore } from '@etude/queue/tasks/task-store';
import type { OpenedRollout } from './open-rollout.js';

interface StopSources {
  readonly tasks: TaskStore;
  readonly cancels: CancelBus;
  /** Of the job: shutdown, or a lost lock. */
  readonly signal: AbortSignal;
}

/** Aborts when the task is cancelled, its wall time is over, or the job's own signal does; each with its reason. */
export function stopSignal(
  { tenant, taskId }: { tenant: string; taskId: string },
  { task, journal }: OpenedRollout,
  { tasks, cancels, signal }: StopSources,
): Disposable & { readonly signal: AbortSignal } {
  const stop = new AbortController();
  const cancel = () => stop.abort(cancelledByCaller());
  if (journal.cancelRequested) cancel();
  const release = cancels.watch('task', { tenant, id: taskId }, () => tasks.cancelRequested(tenant, taskId), cancel);
  const leftMs = Math.max(0, journal.startedAt + task.spec.limits.wallMs - Date.now());
  const timer = setTimeout(() => stop.abort(wallTimeOver()), leftMs);
  return {
    signal: AbortSignal.any([signal, stop.signal]),
    [Symbol.dispose]() {
      clearTimeout(timer);
      release();
    },
  };
}
