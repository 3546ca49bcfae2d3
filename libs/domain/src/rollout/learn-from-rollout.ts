import type { StopReason } from '@etude/contracts/task';
import { mayLearn } from '../skills/life/register-skill.js';
import { withMarks } from '../trust/sources.js';
import { buildSkillCandidate } from '../skills/proof/skill-candidate.js';
import { z } from 'zod';
import { readJsonAnswer } from '../model-answer.js';
import { askModel, type RolloutContext } from './rollout-context.js';
import { bestOf, episodeOf, type Lessons, plainSummary, touchedBy } from './attempt-record.js';
import { distilRequest, reflectionRequest, summaryRequest } from './prompts.js';
import { RolloutStop } from './durable-steps.js';

const DESCRIPTION_CHARS_MAX = 1_000;
const SCENARIOS_MAX = 8;
const Distilled = z.object({ description: z.string(), scenarios: z.array(z.string()).default([]) });

/**
 * What stays of a rollout: its episode, and after training a summary, a reflection and, on success, a skill candidate.
 * What solved a task outside training is kept already, with the record of its last attempt.
 *
 * A limit that is reached on the way costs what would have followed, not what is there.
 * @returns why it stopped early, null where it didn't
 */
export async function learnFromRollout(context: RolloutContext, stopReason: StopReason): Promise<StopReason | null> {
  const { attempts, spec } = context;
  if (spec.memory.readOnly || attempts.length === 0 || (stopReason === 'solved' && spec.mode === 'inference')) return null;
  const lessons: Lessons = { summary: plainSummary(context, attempts, stopReason), reflection: null };
  const trains = spec.mode === 'training' && (stopReason === 'solved' || stopReason === 'attempts');
  const stopped = trains ? await train(context, lessons) : null;
  await putEpisode(context, lessons);
  return stopped;
}

/** Fills `lessons` as the model gives them. */
async function train(context: RolloutContext, lessons: Lessons): Promise<StopReason | null> {
  const { promptTask: task, spec, attempts } = context;
  try {
    const summary = await askModel(context, 't.summary', 'summary', () => summaryRequest(task, attempts));
    lessons.summary = summary.text.trim() || lessons.summary;
    const reflection = await askModel(context, 't.reflection', 'reflection', () =>
      reflectionRequest(task, attempts, spec.referenceSolution ?? null),
    );
    lessons.reflection = reflection.text.trim();
    await putSkill(context);
    return null;
  } catch (error) {
    if (error instanceof RolloutStop) return error.reason;
    throw error;
  }
}

/** A skill from newly written code. What a skill solved needs no other one. */
async function putSkill(context: RolloutContext): Promise<void> {
  const { deps, scope, tenant, taskId, rolloutId, spec, fingerprint, promptTask, attempts, steps } = context;
  const best = bestOf(attempts);
  if (best?.judgement.verdict !== 'AC' || best.skill !== null) return;
  const { code, model, scripted, at } = best;
  const { prompt, evaluator } = spec;
  const solved = { scope, taskId, prompt, fingerprint, evaluator, code, description: '', scenarios: [], model, scripted, at };
  const candidate = buildSkillCandidate(solved);
  if (candidate === null) return; // no test could be made: nothing would ever verify it
  // What was described before stays wanted, so that another worker goes on as this one began.
  const isWanted = steps.replay('t.distil') !== undefined || (await mayLearn(candidate, await context.settings(), deps.procedural));
  if (!isWanted) return;
  const { text } = await askModel(context, 't.distil', 'distil', () => distilRequest(promptTask, code));
  const skill = buildSkillCandidate({ ...solved, ...readDistilled(text) });
  if (skill === null) return;
  // Code may say what its author read: with what the rollout was shown, and whether that is trusted.
  const sources = [...new Set([...skill.sources, ...touchedBy(context, attempts)])];
  await deps.outbox.put(tenant, `${rolloutId}.skill`, { kind: 'skill', skill: withMarks({ ...skill, sources, origin: 'rollout' }) });
}

/** An answer that is no such JSON is taken as the description in words, without its code; an empty one falls back to the task's prompt. */
function readDistilled(text: string): z.output<typeof Distilled> {
  const read = readJsonAnswer(Distilled, text);
  const prose = text.replaceAll(/```[\s\S]*?(?:```|$)/g, '').trim();
  const { description, scenarios } = 'data' in read ? read.data : { description: prose, scenarios: [] };
  return { description: description.slice(0, DESCRIPTION_CHARS_MAX), scenarios: scenarios.slice(0, SCENARIOS_MAX) };
}

async function putEpisode(context: RolloutContext, lessons: Lessons): Promise<void> {
  const { deps, tenant, rolloutId, attempts } = context;
  await deps.outbox.put(tenant, `${rolloutId}.episode`, { kind: 'episode', episode: episodeOf(context, attempts, lessons) });
}

/** Where the last attempt solved the task and no lessons follow, the episode goes beside its transition: one wait instead of two. */
export async function keepSolved(context: RolloutContext): Promise<void> {
  const { attempts, spec } = context;
  if (spec.mode !== 'inference' || attempts.at(-1)?.judgement.verdict !== 'AC') return;
  await putEpisode(context, { summary: plainSummary(context, attempts, 'solved'), reflection: null });
}
