import { errorCode } from '@etude/contracts/errors';
import type { StopReason } from '@etude/contracts/task';
import type { RolloutEnd } from '../ports/journal.js';
import { bestOf, resultOf, type Attempt } from './attempt-record.js';
import { learnFromRollout } from './learn-from-rollout.js';
import { reuseSkill } from './reuse-skill.js';
import { contextOf, type RolloutContext, type RolloutDeps, type RolloutInput } from './rollout-context.js';
import { RolloutStop } from './rollout-stop.js';
import { runAttempt } from './run-attempt.js';

/**
 * Solves a task by attempts: a skill first where one fits, then draft or critique, recall, generate, execute, evaluate and
 * record until an attempt is accepted or a limit is reached; then keeps what was learned and ends the rollout.
 *
 * Every step is journaled before the next begins. Called again with the same journal it goes on behind the last entry: nothing
 * that a model answered is asked again.
 *
 * @param signal aborted with `cancelledByCaller()` or `wallTimeOver()` it ends the rollout; with anything else it leaves the
 *   rollout to the next worker, and the AbortError is thrown
 * @throws EtudeError JOURNAL_FENCED; system errors (MODEL_UNAVAILABLE, SANDBOX_UNAVAILABLE, MEMORY_UNAVAILABLE, ...), after which
 *   the same call goes on where it was, unless `deps.givesUp` says that nobody will make it: then the task has failed with it
 * The loop and the use of memory follow CoALA (Sumers et al. 2023), the critique Reflexion (Shinn et al. 2023).
 */
export async function runRollout(input: RolloutInput, deps: RolloutDeps, signal: AbortSignal): Promise<RolloutEnd> {
  const context = contextOf(input, deps, signal);
  const attempts: Attempt[] = [];
  try {
    const stopReason = await attemptUntilStopped(context, attempts);
    const stoppedLearning = await learnFromRollout(context, attempts, stopReason);
    return await finish(context, attempts, stoppedLearning === 'cancelled' ? 'cancelled' : stopReason, null);
  } catch (error) {
    if (deps.givesUp(error)) await finish(context, attempts, 'error', { code: errorCode(error), message: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

/** Fills `attempts` as they are evaluated, so that a stop in the middle of one keeps those before it. */
async function attemptUntilStopped(context: RolloutContext, attempts: Attempt[]): Promise<StopReason> {
  try {
    const reused = await reuseSkill(context);
    if (reused) attempts.push(reused);
    const generated: Attempt[] = [];
    for (let attempt = 1; bestOf(attempts)?.judgement.verdict !== 'AC'; attempt += 1) {
      if (attempt > context.spec.limits.attemptsMax) return 'attempts';
      const made = await runAttempt(context, attempt, generated);
      generated.push(made);
      attempts.push(made);
    }
    return 'solved';
  } catch (error) {
    if (error instanceof RolloutStop) return error.reason;
    throw error;
  }
}

async function finish({ steps, deps }: RolloutContext, attempts: readonly Attempt[], stopReason: StopReason, error: RolloutEnd['error']): Promise<RolloutEnd> {
  const state = stopReason === 'solved' ? 'succeeded' : stopReason === 'cancelled' ? 'cancelled' : 'failed';
  const end: RolloutEnd = { state, stopReason, result: resultOf(attempts), usage: steps.usage, error };
  await deps.journal.finish(end, []);
  return end;
}
