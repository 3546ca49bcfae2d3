import type { StopReason } from '@etude/contracts/task';
import { mayLearn } from '../skills/life/register-skill.js';
import { countWordsUsed } from '../skills/life/words-in-use.js';
import { withMarks } from '../trust/sources.js';
import { pinnedToImports } from '../skills/proof/bundle-code.js';
import { buildSkillCandidate, type NamedSkill, namesLike, skillName } from '../skills/proof/skill-candidate.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { z } from 'zod';
import { readJsonAnswer } from '../model-answer.js';
import { askModel, type RolloutContext } from './rollout-context.js';
import { bestOf, episodeOf, type Lessons, plainSummary, touchedBy } from './attempt-record.js';
import { distilRequest, reflectionRequest, summaryRequest } from './prompts.js';
import { RolloutStop } from './durable-steps.js';

const DESCRIPTION_CHARS_MAX = 1_000;
const SCENARIOS_MAX = 8;
const Distilled = z.object({ name: z.string().default(''), description: z.string(), scenarios: z.array(z.string()).default([]) });

/**
 * Keeps the lessons of a rollout: its episode, and in training also a summary, a reflection and, on success, a skill candidate.
 *
 * If a limit is reached on the way, the steps after it are skipped; the results so far are kept.
 * @returns the reason for an early stop; null if there was none
 */
export async function learnFromRollout(context: RolloutContext, stopReason: StopReason): Promise<StopReason | null> {
  const { attempts, spec } = context;
  if (spec.memory.readOnly || attempts.length === 0) return null;
  const lessons: Lessons = { summary: plainSummary(context, attempts, stopReason), reflection: null };
  const trains = spec.mode === 'training' && (stopReason === 'solved' || stopReason === 'attempts');
  const stopped = trains ? await train(context, lessons) : null;
  await putEpisode(context, lessons);
  await countProcedures(context);
  return stopped;
}

/** A procedure that the accepted attempt was shown has helped. One that was shown in vain is not blamed. */
async function countProcedures({ attempts, deps, scope, rolloutId }: RolloutContext): Promise<void> {
  const best = bestOf(attempts);
  if (best?.judgement.verdict !== 'AC') return;
  const names = best.recalled.flatMap(({ id, kind }) => (kind === 'skill' ? [id] : []));
  await countWordsUsed(deps, scope, { names, success: true, useId: rolloutId, at: best.at });
}

/** Asks the model for summary, reflection and skill, and writes the texts into `lessons` as they come. */
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

/** Proposes a skill from code that the model wrote. A task solved by an existing skill needs no new one. */
async function putSkill(context: RolloutContext): Promise<void> {
  const { deps, scope, tenant, taskId, rolloutId, spec, fingerprint, promptTask, attempts, steps } = context;
  const best = bestOf(attempts);
  if (best?.judgement.verdict !== 'AC' || best.skill !== null) return;
  const { code, model, scripted, at } = best;
  const { prompt, evaluator } = spec;
  const solved = { scope, taskId, prompt, fingerprint, evaluator, code, description: '', scenarios: [], model, scripted, at };
  const candidate = buildSkillCandidate(solved);
  if (candidate === null) return; // without tests it could never be verified
  // A journaled description means that the skill was wanted, so that a later worker decides the same.
  const isWanted = steps.replay('t.distil') !== undefined || (await mayLearn(candidate, await context.settings(), deps.procedural));
  if (!isWanted) return;
  const { text } = await askModel(context, 't.distil', 'distil', () => distilRequest(promptTask, code));
  const distilled = readDistilled(text);
  const built = buildSkillCandidate({ ...solved, ...distilled, others: await skillsCalled(context, distilled.called) });
  if (built === null) return;
  const skill = await pinnedToImports(built, deps.procedural);
  // The code may repeat texts that its author read, so their sources and marks go with the skill.
  const sources = [...new Set([...skill.sources, ...touchedBy(context, attempts)])];
  await deps.outbox.put(tenant, `${rolloutId}.skill`, { kind: 'skill', skill: withMarks({ ...skill, sources, origin: 'rollout' }) });
}

/** The owner's skills with a name that this task's skill may get. */
async function skillsCalled({ deps, scope, spec: { prompt, evaluator } }: RolloutContext, called: string): Promise<readonly NamedSkill[]> {
  const { entryPoint = null } = rulesOf(evaluator);
  const names = namesLike(skillName({ prompt, entryPoint, called }));
  return (await Promise.all(names.map((name) => deps.procedural.versions(scope, name)))).flat();
}

/** Reads the answer. If it isn't the JSON asked for, its text without code is the description. An empty one becomes the prompt. */
function readDistilled(text: string): Omit<z.output<typeof Distilled>, 'name'> & { readonly called: string } {
  const read = readJsonAnswer(Distilled, text);
  const prose = text.replaceAll(/```[\s\S]*?(?:```|$)/g, '').trim();
  const { name: called, description, scenarios } = 'data' in read ? read.data : { name: '', description: prose, scenarios: [] };
  return { called, description: description.slice(0, DESCRIPTION_CHARS_MAX), scenarios: scenarios.slice(0, SCENARIOS_MAX) };
}

async function putEpisode(context: RolloutContext, lessons: Lessons): Promise<void> {
  const { deps, tenant, rolloutId, attempts } = context;
  await deps.outbox.put(tenant, `${rolloutId}.episode`, { kind: 'episode', episode: episodeOf(context, attempts, lessons) });
}
