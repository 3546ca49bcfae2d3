import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { isRelevant } from '../retrieval/fuse.js';
import { recallsNothing } from '../recall/recall.js';
import { searchSkills, viewOf } from '../skills/life/find-skill.js';
import type { Attempt } from './attempt-record.js';
import { importedBy, importedSkills, noteImports } from './imported-skills.js';
import { layersShown, recallStep } from './recall-step.js';
import { critiqueRequest, draftRequest, generateRequest } from './prompts.js';
import { askModel, type RolloutContext } from './rollout-context.js';
import { tryAnswer } from './try-answer.js';

/** One attempt: draft or critique, recall, generate, execute, evaluate, record. */
export async function runAttempt(context: RolloutContext, attempt: number): Promise<Attempt> {
  const { promptTask: task, spec } = context;
  const before = context.attempts.filter((earlier) => earlier.attempt > 0);
  const first = before.length === 0;
  const drafts = first && (await isDraftUseful(context, attempt));
  const opening = drafts
    ? await askModel(context, `a${attempt}.draft`, 'draft', () => draftRequest(task))
    : first
      ? NO_OPENING
      : await askModel(context, `a${attempt}.critique`, 'critique', () => critiqueRequest(task, before));
  const draft = drafts ? opening.text : null;
  const critique = first ? null : opening.text;
  const recalled = await recallStep(context, attempt, opening.text);
  const generated = await askModel(context, `a${attempt}.generate`, 'generate', () =>
    generateRequest(task, { recalled, draft, attempts: before, critique }),
  );
  const answer = extractAnswer(generated.text, rulesOf(spec.evaluator).entryPoint);
  const imports = await importedSkills(context, recalled, answer?.code ?? '');
  const said = {
    ...importedBy(imports),
    attempt,
    draft,
    critique,
    recalled,
    thought: answer?.thought ?? generated.text,
    skill: null,
    model: generated.model,
    scripted: opening.scripted || generated.scripted,
    inputTokens: opening.inputTokens + generated.inputTokens,
    outputTokens: opening.outputTokens + generated.outputTokens,
    costUsd: opening.costUsd + generated.costUsd,
  };
  return tryAnswer(context, said, answer?.code ?? null, {
    load: imports.load,
    template: imports.template,
    alsoRecord: (tried) => noteImports(context, imports.used, tried),
  });
}

const NO_OPENING = { text: '', scripted: false, inputTokens: 0, outputTokens: 0, costUsd: 0 };

/**
 * A draft serves as a cue. It is asked for only where memory holds something, and the task's own words find nothing that is related. A later
 * worker decides as the journal shows.
 */
async function isDraftUseful(context: RolloutContext, attempt: number): Promise<boolean> {
  const { spec, steps, scope, deps } = context;
  if (recallsNothing(spec.memory)) return false;
  if (steps.replay(`a${attempt}.draft`) !== undefined) return true;
  if (steps.replay(`a${attempt}.generate`) !== undefined) return false;
  const query = { text: spec.prompt, limit: 1, explain: true };
  const within = viewOf(scope, scope.user);
  const found = await Promise.all(
    (await layersShown(context)).map(async (layer) => {
      if (layer === 'procedural') return searchSkills(deps.procedural, scope, query);
      return deps[layer].search(within, query);
    }),
  );
  const hits = found.flat();
  return hits.length > 0 && !hits.some((hit) => isRelevant(hit));
}
