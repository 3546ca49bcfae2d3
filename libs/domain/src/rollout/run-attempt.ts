import type { RecalledItem } from '@etude/contracts/memory';
import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { recall, recallsNothing } from '../recall/recall.js';
import { isInWords } from '../skills/content-digest.js';
import { searchSkills, viewOf } from '../skills/life/find-skill.js';
import { isProven } from '../skills/proof/proof.js';
import type { Attempt } from './attempt-record.js';
import { importedBy, importedSkills, noteImports } from './imported-skills.js';
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

/** A draft serves as a cue, so it is asked for only if there is something to recall. A later worker decides as the journal shows. */
async function isDraftUseful(context: RolloutContext, attempt: number): Promise<boolean> {
  const { spec, steps, scope, deps } = context;
  if (recallsNothing(spec.memory)) return false;
  if (steps.replay(`a${attempt}.draft`) !== undefined) return true;
  if (steps.replay(`a${attempt}.generate`) !== undefined) return false;
  const query = { text: spec.prompt, limit: 1 };
  const within = viewOf(scope, scope.user);
  const found = await Promise.all(
    (await layersShown(context)).map(async (layer) => {
      if (layer === 'procedural') return (await searchSkills(deps.procedural, scope, query)).length;
      return (await deps[layer].search(within, query)).length;
    }),
  );
  return found.some((count) => count > 0);
}

/** The layers to recall from. Skills aren't shown where they are off for the agent. */
async function layersShown({ spec: { memory }, settings }: RolloutContext): Promise<typeof memory.layers> {
  const { enabled } = await settings();
  return memory.layers.filter((layer) => layer !== 'procedural' || enabled);
}

/** The cue joins the model's draft or critique with the task's own words, since memories of the task often use those. */
async function recallStep(context: RolloutContext, attempt: number, opening: string): Promise<readonly RecalledItem[]> {
  const { steps, deps, spec, scope, rolloutId } = context;
  const { memory } = spec;
  if (recallsNothing(memory)) return [];
  return steps.run(`a${attempt}.recall`, 'recall', async () => {
    const policy = { ...memory, layers: await layersShown(context) };
    const { items: value, offered } = await recall(
      {
        scope,
        cue: `${opening}\n\n${spec.prompt}`,
        policy,
        rolloutId,
        // Skills in words need no proof, because only code is run.
        shows: (skill) => isInWords(skill) || isProven(skill, deps.checker),
      },
      deps,
    );
    if (offered.length > 0 && !memory.readOnly) await deps.procedural.countOffers(offered);
    const titles = value.map(({ title }) => title).join(', ');
    return { value, summary: value.length === 0 ? 'nothing recalled' : `recalled ${titles.slice(0, 200)}` };
  });
}
