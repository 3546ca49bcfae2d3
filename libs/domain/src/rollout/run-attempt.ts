import type { RecalledItem, Skill } from '@etude/contracts/memory';
import type { MemoryPolicy } from '@etude/contracts/task';
import { extractAnswer } from '../evaluation/answer-code.js';
import type { ProofChecker } from '../ports/proof-signer.js';
import { recall, recallsNothing } from '../recall/recall.js';
import { isProven } from '../skills/proof/proof.js';
import { isInWords } from '../skills/content-digest.js';
import { askModel, type ModelAnswer, type RolloutContext } from './rollout-context.js';
import type { Attempt } from './attempt-record.js';
import { critiqueRequest, draftRequest, generateRequest } from './prompts.js';
import { tryAnswer } from './try-answer.js';

/** One pass of the loop: draft or critique, recall, generate, execute, evaluate, record. */
export async function runAttempt(context: RolloutContext, attempt: number): Promise<Attempt> {
  const { promptTask: task, spec } = context;
  const before = context.attempts.filter((earlier) => earlier.attempt > 0);
  const first = before.length === 0;
  const opening = await (first
    ? askModel(context, `a${attempt}.draft`, 'draft', () => draftRequest(task))
    : askModel(context, `a${attempt}.critique`, 'critique', () => critiqueRequest(task, before)));
  const draft = first ? opening.text : null;
  const critique = first ? null : opening.text;
  const recalled = await recallStep(context, attempt, opening.text);
  const generated = await askModel(context, `a${attempt}.generate`, 'generate', () =>
    generateRequest(task, { recalled, draft, attempts: before, critique }),
  );
  const answer = extractAnswer(generated.text, 'entryPoint' in spec.evaluator ? spec.evaluator.entryPoint : undefined);
  const said = {
    attempt,
    draft,
    critique,
    recalled,
    thought: answer?.thought ?? generated.text,
    skill: null,
    ...spent(opening, generated),
  };
  return tryAnswer(context, said, answer?.code ?? null, { cutOff: generated.cutOff });
}

function spent(opening: ModelAnswer, generated: ModelAnswer) {
  return {
    model: generated.model,
    scripted: opening.scripted || generated.scripted,
    inputTokens: opening.inputTokens + generated.inputTokens,
    outputTokens: opening.outputTokens + generated.outputTokens,
    costUsd: opening.costUsd + generated.costUsd,
  };
}

/** The cue is what the model made of the task, together with the task's own words, which are often those of its story. */
async function recallStep(context: RolloutContext, attempt: number, opening: string): Promise<readonly RecalledItem[]> {
  const { steps, deps, spec, readScope: scope, rolloutId } = context;
  if (recallsNothing(spec.memory)) return [];
  return steps.run(`a${attempt}.recall`, 'recall', async () => {
    const policy = await withoutUnwantedSkills(context);
    const shows = (skill: Skill) => isShown(skill, deps.checker);
    const { items: value, offered } = await recall({ scope, cue: `${opening}\n\n${spec.prompt}`, policy, rolloutId, shows }, deps);
    if (offered.length > 0 && !spec.memory.readOnly) await deps.procedural.countOffers(offered);
    return {
      value,
      summary:
        value.length === 0
          ? 'nothing recalled'
          : `recalled ${value
              .map(({ title }) => title)
              .join(', ')
              .slice(0, 200)}`,
    };
  });
}

/** An agent whose skills are off is shown none. */
async function withoutUnwantedSkills({ spec: { memory }, settings }: RolloutContext): Promise<MemoryPolicy> {
  if (!memory.layers.includes('procedural') || (await settings()).enabled) return memory;
  return { ...memory, layers: memory.layers.filter((layer) => layer !== 'procedural') };
}

/** Words that were told have nothing to prove; code has. */
function isShown(skill: Skill, checker: ProofChecker): boolean {
  return isInWords(skill) || isProven(skill, checker);
}
