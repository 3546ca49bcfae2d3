import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { StopReason } from '@etude/contracts/task';

/** Ends the attempts loop with a typed reason; what was learned so far is kept. Never leaves `runRollout`. */
export class RolloutStop extends Error {
  constructor(readonly reason: StopReason) {
    super(`the rollout stops: ${reason}`);
    this.name = 'RolloutStop';
  }
}

/** For `AbortController.abort`: somebody asked to cancel the task. Any other reason leaves the rollout to the next worker. */
export function cancelledByCaller(): Error {
  return abortError('CANCELLED', 'The task was cancelled by its caller.');
}

/** For `AbortController.abort`: the task's wall time is over. */
export function wallTimeOver(): Error {
  return abortError('DEADLINE_EXCEEDED', "The task's wall time is over.");
}

/** Named like every abort, so that adapters know it for one. */
function abortError(code: 'CANCELLED' | 'DEADLINE_EXCEEDED', message: string): Error {
  return Object.assign(new EtudeError(code, message), { name: 'AbortError' });
}

/** Why an aborted signal stops the rollout; null where it only stops this worker. */
export function stopReasonOf(signal: AbortSignal): StopReason | null {
  if (!signal.aborted) return null;
  if (signal.reason === 'cancelled' || errorCode(signal.reason) === 'CANCELLED') return 'cancelled';
  return errorCode(signal.reason) === 'DEADLINE_EXCEEDED' ? 'wall_time' : null;
}
