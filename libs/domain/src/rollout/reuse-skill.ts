import type { Skill } from '@etude/contracts/memory';
import { adaptSkill, bindingQuestion, boundCode } from './adapt-skill.js';
import { askModel, type ModelAnswer } from './ask-model.js';
import type { Attempt } from './attempt-record.js';
import { bindRequest } from './prompts.js';
import type { RolloutContext } from './rollout-context.js';
import { tryAnswer } from './try-answer.js';

/** Calibrated similarity from which on a skill is tried before any code is generated. */
const SKILL_SIMILARITY_MIN = 0.8;
const CANDIDATES_MAX = 3;

type FoundSkill = Pick<Skill, 'name' | 'version' | 'code' | 'entryPoint' | 'kind' | 'description' | 'parameters' | 'model' | 'scripted'>;

/**
 * Attempt 0: a skill that solved this very task, else one that is near enough, answers before any code is generated.
 *
 * Null where there is none, or where its parameters could not be told from the task. Every use is recorded, failures too.
 */
export async function reuseSkill(context: RolloutContext): Promise<Attempt | null> {
  const skill = await findSkill(context);
  if (skill === null) return null;
  const { code, binding } = await answerOf(context, skill);
  if (code === null) {
    await recordFailedBinding(context, skill);
    return null;
  }
  const said = {
    attempt: 0,
    draft: null,
    critique: null,
    recalled: [],
    thought: '',
    skill: `${skill.name}@${skill.version}`,
    model: binding?.model ?? null,
    scripted: skill.scripted || (binding?.scripted ?? false),
    inputTokens: binding?.inputTokens ?? 0,
    outputTokens: binding?.outputTokens ?? 0,
    costUsd: binding?.costUsd ?? 0,
  };
  return tryAnswer(context, said, code, {
    alsoRecord: (attempt) => noteUse(context, skill, attempt.judgement.verdict === 'AC', attempt.at),
  });
}

/** Not journaled where nothing is found: until a step follows, another worker may as well look again. */
async function findSkill(context: RolloutContext): Promise<FoundSkill | null> {
  const { steps, spec } = context;
  const { off, preferSkills, layers } = spec.memory;
  if (off || !preferSkills || !layers.includes('procedural')) return null;
  const journaled = steps.replay('a0.skill') as FoundSkill | undefined;
  if (journaled || steps.begun) return journaled ?? null;
  const found = await searchSkill(context);
  if (found === null) return null;
  const { name, version, code, entryPoint, kind, description, parameters, model, scripted } = found.skill;
  const value: FoundSkill = { name, version, code, entryPoint, kind, description, parameters, model, scripted };
  return steps.run('a0.skill', 'skill', () => Promise.resolve({ value, summary: `${name}@${version} ${found.how}`, scripted }));
}

async function searchSkill({ deps, readScope, fingerprint, spec }: RolloutContext): Promise<{ skill: Skill; how: string } | null> {
  const known = await deps.procedural.byFingerprint(readScope, fingerprint);
  const same = known.find((skill) => adaptSkill(skill, spec.evaluator) !== null);
  if (same) return { skill: same, how: 'solved this task before' };
  const near = await deps.procedural.search(readScope, { text: spec.prompt, limit: CANDIDATES_MAX, similarityMin: SKILL_SIMILARITY_MIN });
  const best = near.find(({ skill, similarity }) => similarity >= SKILL_SIMILARITY_MIN && adaptSkill(skill, spec.evaluator) !== null);
  return best ? { skill: best.skill, how: `is near the task (${best.similarity.toFixed(2)})` } : null;
}

async function answerOf(context: RolloutContext, skill: FoundSkill): Promise<{ code: string | null; binding: ModelAnswer | null }> {
  const answer = adaptSkill(skill, context.spec.evaluator);
  if (answer === null) return { code: null, binding: null };
  if ('code' in answer) return { code: answer.code, binding: null };
  const binding = await askModel(context, 'a0.bind', 'bind', () =>
    bindRequest(context.promptTask, skill, bindingQuestion(skill, answer.binds)),
  );
  return { code: boundCode(skill, answer.binds, binding.text), binding };
}

async function recordFailedBinding(context: RolloutContext, skill: FoundSkill): Promise<void> {
  if (context.spec.memory.readOnly) return;
  await context.steps.run('a0.record', 'record', async () => {
    await noteUse(context, skill, false, context.deps.clock.now());
    return { value: null, summary: `${skill.name} could not be given its parameters` };
  });
}

async function noteUse(
  { deps, tenant, rolloutId, scope, fingerprint, spec }: RolloutContext,
  skill: FoundSkill,
  success: boolean,
  at: number,
): Promise<void> {
  const { name, version } = skill;
  await deps.outbox.put(tenant, `${rolloutId}.a0.use`, {
    kind: 'skill_use',
    scope,
    name,
    version,
    success,
    fingerprint,
    cue: spec.prompt,
    at,
  });
}
