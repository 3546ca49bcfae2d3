import { errorCode } from '@etude/contracts/errors';
import type { StopReason } from '@etude/contracts/task';
import type { RolloutEnd } from '../ports/journal.js';
import { resultOf } from './attempt-record.js';
import { learnFromRollout } from './learn-from-rollout.js';
import { reuseSkill } from './reuse-skill.js';
import { contextOf, type RolloutContext, type RolloutDeps, type RolloutInput } from './rollout-context.js';
import { RolloutStop } from './durable-steps.js';
import { runAttempt } from './run-attempt.js';

/**
 * Solves a task by attempts: a skill first where one fits, then draft or critique, recall, generate, execute, evaluate and
 * record until an attempt is accepted or a limit is reached; then keeps what was learned and ends the rollout.
 *
 * Every step is journaled before the next begins. Called again with the same journal it goes on behind the last entry: nothing
 * that a model answered is asked again.
 *
 * @param signal aborted with a `RolloutStop` it ends the rollout; with anything else it leaves the
 *   rollout to the next worker, and the AbortError is thrown
 * @throws EtudeError JOURNAL_FENCED; system errors (MODEL_UNAVAILABLE, SANDBOX_UNAVAILABLE, MEMORY_UNAVAILABLE, ...), after which
 *   the same call goes on where it was, unless `deps.givesUp` says that nobody will make it: then the task has failed with it
 * The loop and the use of memory follow CoALA (Sumers et al. 2023), the critique Reflexion (Shinn et al. 2023).
 */
export async function runRollout(input: RolloutInput, deps: RolloutDeps, signal: AbortSignal): Promise<RolloutEnd> {
  const context = contextOf(input, deps, signal);
  try {
    const stopReason = await attemptUntilStopped(context);
    const stoppedLearning = await learnFromRollout(context, stopReason);
    return await finish(context, stoppedLearning === 'cancelled' ? 'cancelled' : stopReason, null);
  } catch (error) {
    if (deps.givesUp(error))
      await finish(context, 'error', { code: errorCode(error), message: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

async function attemptUntilStopped(context: RolloutContext): Promise<StopReason> {
  try {
    let made = await reuseSkill(context);
    for (let attempt = 1; made?.judgement.verdict !== 'AC'; attempt += 1) {
      if (attempt > context.spec.limits.attemptsMax) return 'attempts';
      made = await runAttempt(context, attempt);
    }
    return 'solved';
  } catch (error) {
    if (error instanceof RolloutStop) return error.reason;
    throw error;
  }
}

async function finish({ steps, deps, attempts }: RolloutContext, stopReason: StopReason, error: RolloutEnd['error']): Promise<RolloutEnd> {
  const state = stopReason === 'solved' ? 'succeeded' : stopReason === 'cancelled' ? 'cancelled' : 'failed';
  const end: RolloutEnd = { state, stopReason, result: resultOf(attempts), usage: steps.usage, error };
  await deps.journal.finish(end, []);
  return end;
}
