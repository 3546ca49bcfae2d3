import { errorCode } from '@etude/contracts/errors';
import type { Limits, StopReason } from '@etude/contracts/task';
import { z } from 'zod';
import { rulesOf } from '../evaluation/evaluators.js';
import { approximateTokens, readJsonAnswer } from '../model-answer.js';
import { LEARN_FROM, type LearningEnd, type LearningJournal } from '../ports/journal.js';
import { mayLearn } from '../skills/life/register-skill.js';
import { countWordsUsed } from '../skills/life/told-procedure.js';
import { pinnedToImports } from '../skills/proof/bundle-code.js';
import { buildSkillCandidate, type NamedSkill, namesLike, skillName, type SolvedTask } from '../skills/proof/skill-candidate.js';
import { withMarks } from '../trust/sources.js';
import { type Attempt, bestOf, episodeOf, plainSummary, touchedBy } from './attempt-record.js';
import { RolloutStop } from './durable-steps.js';
import { lessonsRequest } from './prompts.js';
import { askModel, contextOf, type RolloutContext, type RolloutDeps, type RolloutInput } from './rollout-context.js';

const DESCRIPTION_CHARS_MAX = 1_000;
const SCENARIOS_MAX = 8;
/** Parses the model's lessons. A missing field, or one of a wrong type, becomes empty, so that the other fields can be used. */
const Lessons = z.object({
  summary: z.string().trim().catch(''),
  reflection: z.string().trim().catch(''),
  name: z.string().catch(''),
  description: z.string().catch(''),
  scenarios: z.array(z.string()).catch([]),
});
type Lessons = z.output<typeof Lessons>;
const NO_LESSONS = Lessons.parse({});

export interface LearningDeps extends Pick<RolloutDeps, 'model' | 'outbox' | 'procedural' | 'settings' | 'clock' | 'givesUp' | 'tracing'> {
  readonly journal: LearningJournal;
  /** `wallMs` is counted from the first start of learning. `modelTokensMax` includes the tokens of prompts. */
  readonly limits: Pick<Limits, 'wallMs' | 'modelTokensMax'>;
}

type LearningContext = RolloutContext<LearningDeps>;
type KeepingContext = RolloutContext<Pick<LearningDeps, 'outbox' | 'procedural'>>;

/** Whether learning follows a rollout: the task is in training, attempts were made, and neither a cancellation nor a limit stopped the rollout. */
export function mayTeach({ spec, attempts }: Pick<RolloutContext, 'spec' | 'attempts'>, stopReason: StopReason): boolean {
  const isJudged = stopReason === 'solved' || stopReason === 'attempts';
  return spec.mode === 'training' && isJudged && !spec.memory.readOnly && attempts.length > 0;
}

/**
 * Learns from an ended rollout in training: writes its episode with summary and reflection and, on success, a skill candidate. The model is
 * asked at most once. If a limit is reached first, or the answer can't be used, the episode gets a summary made without a model.
 *
 * The model's answer is journaled. A second call with the same journal doesn't ask again, and writes the same records.
 *
 * @param signal an abort with a `RolloutStop` ends learning; any other abort leaves learning to the next worker
 * @throws RolloutStop if learning was cancelled; EtudeError JOURNAL_FENCED; system errors, as `runRollout` does
 */
export async function learnFromRollout(input: RolloutInput, deps: LearningDeps, signal: AbortSignal): Promise<LearningEnd> {
  const { journal, limits } = deps;
  const context = contextOf(input, deps, signal, { ...limits, stepsMax: Infinity, costUsdMax: null });
  context.attempts.push(...((journal.entries.get(LEARN_FROM)?.value ?? []) as Attempt[]));
  let end: LearningEnd = { state: 'done', error: null };
  try {
    const lessons = await askForLessons(context).catch((error: unknown) => {
      if (!(error instanceof RolloutStop) || error.reason === 'cancelled') throw error;
      end = failedWith(error.code, `learning reached a limit: ${error.reason}`);
      return NO_LESSONS;
    });
    await keepEpisode(context, bestOf(context.attempts)?.judgement.verdict === 'AC' ? 'solved' : 'attempts', lessons);
  } catch (error) {
    if (deps.givesUp(error)) await journal.finish(failedWith(errorCode(error), error instanceof Error ? error.message : String(error)));
    throw error;
  }
  await journal.finish(end);
  return end;
}

const failedWith = (code: string, message: string): LearningEnd => ({ state: 'failed', error: { code, message } });

/** Writes the episode once, and counts the procedures that helped. If there are no lessons, the summary is made without a model. */
export async function keepEpisode(
  context: KeepingContext,
  stopReason: StopReason,
  { summary, reflection }: Pick<Lessons, 'summary' | 'reflection'> = NO_LESSONS,
): Promise<void> {
  const { deps, tenant, rolloutId, attempts, spec } = context;
  if (context.episodeKept || spec.memory.readOnly || attempts.length === 0) return;
  const lessons = { summary: summary || plainSummary(context, attempts, stopReason), reflection: reflection || null };
  await deps.outbox.put(tenant, `${rolloutId}.episode`, { kind: 'episode', episode: episodeOf(context, attempts, lessons) });
  await countProcedures(context);
  context.episodeKept = true;
}

/** Counts a success for procedures that the accepted attempt was shown, and for a skill that it copied. Failures are not counted. */
async function countProcedures({ attempts, deps, scope, rolloutId }: KeepingContext): Promise<void> {
  const best = bestOf(attempts);
  if (best?.judgement.verdict !== 'AC') return;
  const names = best.recalled.flatMap(({ id, kind }) => (kind === 'skill' ? [id] : []));
  await countWordsUsed(deps, scope, { names, success: true, code: best.code, useId: rolloutId, at: best.at });
}

const LESSONS = 't.lessons';
/** Key of the step that also asks for a skill's description. The key shows a later worker that a skill was wanted. */
const LESSONS_WITH_SKILL = 't.skill';

/** Asks the model once for all lessons, and proposes the skill. If the first attempt was accepted, only a skill can be learned. */
async function askForLessons(context: LearningContext): Promise<Lessons> {
  const { promptTask, spec, attempts, deps } = context;
  const skill = await wantedSkill(context);
  // Attempt 0 tried an existing skill. Its failure teaches nothing about the task.
  const own = attempts.filter(({ attempt }) => attempt > 0);
  const isReflecting = own.length > 1 || (own[0] ?? attempts[0])?.judgement.verdict !== 'AC';
  if (!isReflecting && skill === null) return NO_LESSONS;
  const docstring = skill === null || isReflecting ? null : docstringOf(skill);
  if (skill !== null && docstring !== null) {
    // The docstring describes the code, so the model needn't be asked.
    await putSkill(context, skill, { ...NO_LESSONS, description: docstring });
    return NO_LESSONS;
  }
  const { text } = await askModel(context, skill === null ? LESSONS : LESSONS_WITH_SKILL, 'learn', () => {
    const material = { attempts: isReflecting ? attempts : [], reference: spec.referenceSolution ?? null, code: skill?.code ?? null };
    const request = lessonsRequest(promptTask, material);
    const tokens = request.messages.reduce((sum, { content }) => sum + approximateTokens(content), 0);
    if (tokens >= deps.limits.modelTokensMax) throw new RolloutStop('model_tokens');
    return request;
  });
  const read = readJsonAnswer(Lessons, text);
  const lessons = 'data' in read ? read.data : NO_LESSONS;
  if (skill !== null) await putSkill(context, skill, lessons);
  // If only a skill was wanted, summary and reflection were not asked for and are dropped.
  return isReflecting ? lessons : NO_LESSONS;
}

/** The accepted code if a skill should be made from it, else null. If an existing skill solved the task, no new skill is made. */
async function wantedSkill(context: LearningContext): Promise<SolvedTask | null> {
  const { deps, scope, taskId, spec, fingerprint, attempts, steps } = context;
  const best = bestOf(attempts);
  if (best?.judgement.verdict !== 'AC' || best.skill !== null) return null;
  const { code, model, scripted, at } = best;
  const { prompt, evaluator } = spec;
  const solved = { scope, taskId, prompt, fingerprint, evaluator, code, description: '', scenarios: [], model, scripted, at };
  const candidate = buildSkillCandidate(solved);
  if (candidate === null || steps.replay(LESSONS) !== undefined) return null; // A skill without tests could never be verified.
  const isWanted = steps.replay(LESSONS_WITH_SKILL) !== undefined || (await mayLearn(candidate, await context.settings(), deps.procedural));
  return isWanted ? solved : null;
}

const DOCSTRING_CHARS_MIN = 20;
const DOCSTRING = /^[ \t]*("""|''')([^]*?)\1/;

function docstringOf({ code, evaluator }: SolvedTask): string | null {
  const { entryPoint } = rulesOf(evaluator);
  if (entryPoint === undefined) return null;
  const [, body = ''] = new RegExp(`^def ${entryPoint}\\([^]*?\\)[^\\n]*:[ \\t]*\\n([^]*)`, 'm').exec(code) ?? [];
  const docstring = (DOCSTRING.exec(body)?.[2] ?? '').replaceAll(/\s+/g, ' ').trim();
  return docstring.length >= DOCSTRING_CHARS_MIN ? docstring : null;
}

/** Proposes a skill from code that the model wrote. Without a description, the task's prompt is used instead. */
async function putSkill(context: LearningContext, solved: SolvedTask, lessons: Lessons): Promise<void> {
  const { deps, tenant, rolloutId, attempts } = context;
  const { name: called, description, scenarios } = lessons;
  const told = { called, description: description.slice(0, DESCRIPTION_CHARS_MAX), scenarios: scenarios.slice(0, SCENARIOS_MAX) };
  const built = buildSkillCandidate({ ...solved, ...told, others: await skillsCalled(context, called) });
  if (built === null) return;
  const skill = await pinnedToImports(built, deps.procedural);
  // The code may repeat texts that the model read. So the skill also gets the sources and marks of these texts.
  const sources = [...new Set([...skill.sources, ...touchedBy(context, attempts)])];
  await deps.outbox.put(tenant, `${rolloutId}.skill`, { kind: 'skill', skill: withMarks({ ...skill, sources, origin: 'rollout' }) });
}

/** The owner's skills whose names are among the possible names of this task's skill. */
async function skillsCalled({ deps, scope, spec: { prompt, evaluator } }: LearningContext, called: string): Promise<readonly NamedSkill[]> {
  const { entryPoint = null } = rulesOf(evaluator);
  const names = namesLike(skillName(prompt, entryPoint, called));
  return (await Promise.all(names.map((name) => deps.procedural.versions(scope, name)))).flat();
}
