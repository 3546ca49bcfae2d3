import { errorCode } from '@etude/contracts/errors';
import type { StopReason } from '@etude/contracts/task';
import type { RolloutEnd } from '../ports/journal.js';
import { resultOf } from './attempt-record.js';
import { keepEpisode, mayTeach } from './learn-from-rollout.js';
import { putShows } from './item-shows.js';
import { reuseSkill } from './reuse-skill.js';
import { contextOf, type RolloutContext, type RolloutDeps, type RolloutInput } from './rollout-context.js';
import { RolloutStop } from './durable-steps.js';
import { type AgentAtWork, beginWork, endWork, runSteps } from './run-steps.js';
import { runAttempt } from './run-attempt.js';

/**
 * Solves a task by attempts. A fitting skill is tried first. Each attempt drafts or criticises, recalls, generates, executes, evaluates and
 * records, until one is accepted or a limit is reached; with the strategy `codeact` it acts in steps instead (`run-steps.ts`). Then the
 * rollout ends with its verdict. What training makes of it follows by itself (`learn-from-rollout.ts`).
 *
 * Every step is journaled before the next begins. Called again with the same journal, it continues after the last entry and repeats no
 * model call.
 *
 * @param signal aborted with a `RolloutStop`, it ends the rollout; aborted with anything else, it leaves the rollout to the next worker,
 * and the AbortError is thrown
 * @throws EtudeError JOURNAL_FENCED; system errors (MODEL_UNAVAILABLE, SANDBOX_UNAVAILABLE, MEMORY_UNAVAILABLE, ...). The same call then
 * continues where it stopped, unless `deps.givesUp` says that nobody will retry: then the task has failed with that error.
 * The loop and the use of memory follow CoALA (Sumers et al. 2023), the critique Reflexion (Shinn et al. 2023).
 */
export async function runRollout(input: RolloutInput, deps: RolloutDeps, signal: AbortSignal): Promise<RolloutEnd> {
  const context = contextOf(input, deps, signal);
  try {
    const stopReason = await attemptUntilStopped(context);
    if (!mayTeach(context, stopReason)) await keepEpisode(context, stopReason);
    await putShows(context);
    return await finish(context, stopReason, null);
  } catch (error) {
    if (deps.givesUp(error))
      await finish(context, 'error', { code: errorCode(error), message: error instanceof Error ? error.message : String(error) });
    throw error;
  }
}

async function attemptUntilStopped(context: RolloutContext): Promise<StopReason> {
  const { spec } = context;
  let work: AgentAtWork | null = null;
  const ended = async (reason: StopReason) => {
    if (work !== null) await endWork(context, work);
    return reason;
  };
  try {
    let made = await reuseSkill(context);
    for (let attempt = 1; made?.judgement.verdict !== 'AC'; attempt += 1) {
      if (attempt > spec.limits.attemptsMax) return await ended('attempts');
      made = await context.tracing.span('attempt', { values: { 'etude.attempt': attempt } }, async () =>
        spec.strategy === 'codeact' ? runSteps(context, attempt, (work ??= await beginWork(context))) : runAttempt(context, attempt),
      );
    }
    return await ended('solved');
  } catch (error) {
    // Any other error leaves the sandbox to the next worker.
    if (error instanceof RolloutStop) return ended(error.reason);
    throw error;
  }
}

async function finish(context: RolloutContext, stopReason: StopReason, error: RolloutEnd['error']): Promise<RolloutEnd> {
  const { steps, deps, attempts } = context;
  const state = stopReason === 'solved' ? 'succeeded' : stopReason === 'cancelled' ? 'cancelled' : 'failed';
  const learnFrom = mayTeach(context, stopReason) ? { learnFrom: attempts } : {};
  const end: RolloutEnd = { state, stopReason, result: resultOf(attempts), usage: steps.usage, error, ...learnFrom };
  await deps.journal.finish(end);
  return end;
}
