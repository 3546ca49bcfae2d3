import { errorCode } from '@etude/contracts/errors';
import type { StopReason } from '@etude/contracts/task';
import type { RolloutEnd } from '../ports/journal.js';
import { type Attempt, resultOf } from './attempt-record.js';
import { keepEpisode, mayTeach } from './learn-from-rollout.js';
import { findForTask, putShows, recallStep } from './recall-step.js';
import { reuseSkill } from './reuse-skill.js';
import { askModel, contextOf, type RolloutContext, type RolloutDeps, type RolloutInput } from './rollout-context.js';
import { RolloutStop } from './durable-steps.js';
import { type AgentAtWork, beginWork, endWork, runSteps } from './run-steps.js';
import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { recallsNothing } from '../recall/recall.js';
import { importedSkills, tryImporting } from './imported-skills.js';
import { critiqueRequest, draftRequest, generateRequest } from './prompts.js';
import { addCost, NO_COST } from '../model-answer.js';

/**
 * Solves a task by attempts. A fitting skill is tried first. Each attempt drafts or criticises, recalls, generates, executes, evaluates and records,
 * until an attempt is accepted or a limit is reached. With the strategy `codeact`, an attempt acts in steps instead (`run-steps.ts`). In training,
 * learning follows as a job of its own (`learn-from-rollout.ts`).
 *
 * Every step is journaled before the next begins. A second call with the same journal continues after the last entry and repeats no model call.
 *
 * @param signal an abort with a `RolloutStop` ends the rollout. Any other abort throws its AbortError and leaves the rollout to the next
 * worker
 * @throws EtudeError JOURNAL_FENCED; system errors such as MODEL_UNAVAILABLE, SANDBOX_UNAVAILABLE or MEMORY_UNAVAILABLE. A retry continues where this
 *   call stopped. If `deps.givesUp` says that there is no retry, the task has failed with that error.
 * The loop and the use of memory follow CoALA (Sumers et al. 2023), the critique follows Reflexion (Shinn et al. 2023).
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
    // After any other error, the sandbox stays open for the worker that continues.
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

async function runAttempt(context: RolloutContext, attempt: number): Promise<Attempt> {
  const { promptTask: task, spec } = context;
  const before = context.attempts.filter((earlier) => earlier.attempt > 0);
  const first = before.length === 0;
  const found = first && mayDraft(context, attempt) ? await findForTask(context, '') : null;
  const drafts = first && (found?.unrelated ?? context.steps.replay(`a${attempt}.draft`) !== undefined);
  const opening = drafts
    ? await askModel(context, `a${attempt}.draft`, 'draft', () => draftRequest(task))
    : first
      ? NO_OPENING
      : await askModel(context, `a${attempt}.critique`, 'critique', () => critiqueRequest(task, before));
  const draft = drafts ? opening.text : null;
  const critique = first ? null : opening.text;
  const recalled = await recallStep(context, attempt, opening.text, drafts ? null : found);
  const generated = await askModel(context, `a${attempt}.generate`, 'generate', () =>
    generateRequest(task, { recalled, draft, attempts: before, critique }),
  );
  const answer = extractAnswer(generated.text, rulesOf(spec.evaluator).entryPoint);
  const imports = await importedSkills(context, recalled, answer?.code ?? '');
  const thought = answer?.thought ?? generated.text;
  const said = { attempt, draft, critique, recalled, thought, skill: null, ...addCost(opening, generated) };
  return tryImporting(context, said, answer?.code ?? null, imports);
}

const NO_OPENING = { text: '', ...NO_COST };

/** Whether this worker decides if a draft is made. If an earlier worker has passed this point, the journal has that worker's decision. */
function mayDraft({ spec, steps }: RolloutContext, attempt: number): boolean {
  if (recallsNothing(spec.memory)) return false;
  return ['draft', 'recall', 'generate'].every((step) => steps.replay(`a${attempt}.${step}`) === undefined);
}
