import type { Skill } from '@etude/contracts/memory';
import { extractAnswer } from '../evaluation/answer-code.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { bundledCode, dependencyOn, importedNames } from '../skills/proof/bundle-code.js';
import { loadedWith } from '../skills/proof/use-skill.js';
import type { Attempt } from './attempt-record.js';
import { noteImports } from './imported-skills.js';
import { wrapRequest } from './prompts.js';
import type { ReusableSkill } from './reuse-skill.js';
import { askModel, type RolloutContext } from './rollout-context.js';
import { tryAnswer } from './try-answer.js';

/** A wrapper is short. A longer answer is the whole program, which an attempt writes better. */
const WRAPPER_LINES_MAX = 60;

/** Whether a wrapper can make this function answer the task: both have a name to call, and the function says what it takes. */
export function canBeWrapped({ kind, contract, entryPoint }: Skill, { spec }: RolloutContext): boolean {
  return kind === 'function' && entryPoint !== null && contract !== undefined && rulesOf(spec.evaluator).entryPoint !== undefined;
}

/** What has to be loaded so that a wrapper can import the skill. @throws as `loadedWith` */
export function loadedForWrapper(skill: Skill, deps: RolloutContext['deps']) {
  return loadedWith({ name: 'the answer', scope: skill.scope, dependencies: [dependencyOn(skill)], packages: [] }, deps);
}

/**
 * Attempt 0 by a function that doesn't fit as it is: asks the model once for a wrapper that imports it, without showing its code. Returns null
 * if the answer doesn't import it or is long. The skill isn't blamed for that.
 */
export async function wrapSkill(context: RolloutContext, skill: ReusableSkill): Promise<Attempt | null> {
  const { text, ...asked } = await askModel(context, 'a0.wrap', 'wrap', () => wrapRequest(context.promptTask, skill));
  const answer = extractAnswer(text, rulesOf(context.spec.evaluator).entryPoint);
  if (answer === null || !importedNames(answer.code).has(skill.name) || answer.code.split('\n').length > WRAPPER_LINES_MAX) return null;
  const said = {
    attempt: 0,
    draft: null,
    critique: null,
    recalled: [],
    thought: answer.thought,
    skill: null,
    imported: [`${skill.name}@${skill.version}`],
    ofSkill: skill.ofSkill,
    ...asked,
    scripted: skill.scripted || asked.scripted,
  };
  return tryAnswer(context, said, answer.code, {
    load: (code) => bundledCode(code, skill.needed, [dependencyOn(skill)]),
    template: skill.template,
    alsoRecord: (attempt) => noteImports(context, [skill], attempt),
  });
}
