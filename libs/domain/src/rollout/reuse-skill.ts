import { errorCode } from '@etude/contracts/errors';
import type { MemoryWrite } from '@etude/contracts/memory';
import { bundledCode } from '../skills/proof/bundle-code.js';
import { contentDigest } from '../skills/content-digest.js';
import { validateArguments } from '../skills/proof/call-arguments.js';
import { adaptSkill, bindingQuestion, boundCode, findReusable, jsonObjectIn, type ReusableSkill } from './find-reusable.js';
import { askModel, type ModelAnswer, type RolloutContext } from './rollout-context.js';
import type { Attempt } from './attempt-record.js';
import { bindRequest } from './prompts.js';
import { type Ran, tryAnswer } from './try-answer.js';

type SkillUse = Extract<MemoryWrite, { kind: 'skill_use' }>;
type HowItWent = Pick<SkillUse, 'success' | 'at' | 'inputDigest' | 'outputDigest' | 'failure'>;

const FAILURE_CHARS_MAX = 4_000;

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
    ofSkill: skill.untrusted,
    model: binding?.model ?? null,
    scripted: skill.scripted || (binding?.scripted ?? false),
    inputTokens: binding?.inputTokens ?? 0,
    outputTokens: binding?.outputTokens ?? 0,
    costUsd: binding?.costUsd ?? 0,
  };
  const template = skill.allPackages.length === 0 ? undefined : context.deps.templateFor?.(skill.allPackages);
  return tryAnswer(context, said, code, {
    load: (text) => bundledCode(text, skill.needed, skill.dependencies ?? []),
    ...(template === undefined ? {} : { template }),
    alsoRecord: (attempt, ran) => noteUse(context, skill, howItWent(context, attempt, ran)),
  });
}

/** Not journaled where nothing is found: until a step follows, another worker may as well look again. */
async function findSkill(context: RolloutContext): Promise<ReusableSkill | null> {
  const { steps, spec, deps } = context;
  const { off, preferSkills, layers, readOnly } = spec.memory;
  if (off || !preferSkills || !layers.includes('procedural')) return null;
  const journaled = steps.replay('a0.skill') as ReusableSkill | undefined;
  if (journaled || steps.begun) return journaled ?? null;
  const found = await findReusable(context);
  if (found === null) return null;
  const { name, version, scope, scripted } = found.skill;
  const offered = { ...scope, name, version };
  return steps.run('a0.skill', 'skill', async () => {
    if (!readOnly) await deps.procedural.countOffers([offered]);
    return { value: found.skill, summary: `${name}@${version} ${found.how}`, scripted };
  });
}

async function answerOf(context: RolloutContext, skill: ReusableSkill): Promise<{ code: string | null; binding: ModelAnswer | null }> {
  const answer = adaptSkill(skill, context.spec.evaluator);
  if (answer === null) return { code: null, binding: null };
  if ('code' in answer) return { code: answer.code, binding: null };
  const shown = { ...skill, parameters: skill.contract?.parameters ?? skill.parameters };
  const binding = await askModel(context, 'a0.bind', 'bind', () =>
    bindRequest(context.promptTask, shown, bindingQuestion(skill, answer.binds)),
  );
  const fits = answer.binds === 'stdin' || takes(skill, jsonObjectIn(binding.text) ?? {});
  return { code: fits ? boundCode(skill, answer.binds, binding.text) : null, binding };
}

/** Whether the skill's contract takes these arguments; what is not known of it is left to the code. */
function takes(skill: ReusableSkill, given: Record<string, unknown>): boolean {
  if (skill.contract === undefined) return true;
  try {
    return validateArguments(skill, given) !== null;
  } catch (error) {
    if (errorCode(error) === 'INVALID_ARGUMENT') return false;
    throw error;
  }
}

async function recordFailedBinding(context: RolloutContext, skill: ReusableSkill): Promise<void> {
  if (context.spec.memory.readOnly) return;
  await context.steps.run('a0.record', 'record', async () => {
    const failure = { input: inputOf(context), error: 'its parameters could not be told from the task' };
    await noteUse(context, skill, { success: false, at: context.deps.clock.now(), failure });
    return { value: null, summary: `${skill.name} could not be given its parameters` };
  });
}

/** Why the task stands for the input: cases may be hidden, and failures are shown. */
function howItWent(context: RolloutContext, { judgement, at }: Attempt, { runs, results }: Ran): HowItWent {
  const success = judgement.verdict === 'AC';
  if (!success) return { success, at, failure: { input: inputOf(context), error: judgement.reason.slice(0, FAILURE_CHARS_MAX) } };
  const given = runs.map((run) => ({ ...run, code: undefined, tests: undefined }));
  const gave = results.map(({ value, stdout }) => ({ value: value ?? null, stdout }));
  return { success, at, inputDigest: contentDigest([given, context.spec.files]), outputDigest: contentDigest(gave) };
}

const inputOf = ({ spec }: RolloutContext) => spec.prompt.slice(0, FAILURE_CHARS_MAX);

/** Where it fails, a model writes the code: it fell back. */
async function noteUse(
  { deps, tenant, rolloutId, scope, fingerprint, spec }: RolloutContext,
  { name, version, scope: { tenant: ownerTenant, agent, user } }: ReusableSkill,
  went: HowItWent,
): Promise<void> {
  await deps.outbox.put(tenant, `${rolloutId}.a0.use`, {
    kind: 'skill_use',
    scope,
    owner: { tenant: ownerTenant, agent, ...(user === null ? {} : { user }) },
    name,
    version,
    fingerprint,
    cue: spec.prompt,
    ...went,
    ...(went.success ? {} : { fellBack: true }),
  });
}
