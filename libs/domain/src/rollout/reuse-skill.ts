import { errorCode } from '@etude/contracts/errors';
import { Json } from '@etude/contracts/json';
import type { Skill } from '@etude/contracts/memory';
import type { CountedUse } from '../ports/memory.js';
import type { Evaluator, TaskSpec } from '@etude/contracts/task';
import { z } from 'zod';
import type { SkillAnswer } from '../evaluation/evaluator.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { readJsonAnswer, addCost, NO_COST } from '../model-answer.js';
import { contentDigest } from '../skills/content-digest.js';
import { ownersFor, searchSkills, type SkillReader, viewOf } from '../skills/life/find-skill.js';
import { untrustedOfSkill } from '../skills/life/carried-over.js';
import { asMember } from '../skills/life/merged-skills.js';
import { bundledCode } from '../skills/proof/bundle-code.js';
import { validateArguments } from '../skills/proof/call-values.js';
import { isProven } from '../skills/proof/proof.js';
import type { loadedWith } from '../skills/proof/use-skill.js';
import { type Attempt, NOTHING_SAID } from './attempt-record.js';
import { bindRequest } from './prompts.js';
import { askModel, type ModelAnswer, type RolloutContext, type RolloutDeps } from './rollout-context.js';
import { type Ran, tryAnswer } from './try-answer.js';
import { answerImporting, canBeWrapped, loadedOrNull, wrapSkill } from './imported-skills.js';
import { useOf } from '../skills/life/usage.js';

type KeptSkill = Omit<Skill, 'tests' | 'cues' | 'evidence'>;
const kept = ({ tests: _tests, cues: _cues, evidence: _evidence, ...skill }: Skill): KeptSkill => skill;

/** A skill as the journal stores it, so that a worker that continues after a crash runs exactly the checked code. */
export interface ReusableSkill extends KeptSkill {
  /** The skills that this one calls, in the order of loading. */
  readonly needed: readonly KeptSkill[];
  /** The sandbox template with the packages of this skill and of `needed`. Absent means the default template. */
  readonly template?: string;
  readonly ofSkill: readonly string[];
  /** Whether the model must write a wrapper that calls the skill. Then `needed` contains the skill itself, too. */
  readonly isToWrap?: boolean;
}

type HowItWent = Pick<CountedUse, 'success' | 'at' | 'inputDigest' | 'outputDigest' | 'failure'>;

const CANDIDATES_MAX = 3;
const FAILURE_CHARS_MAX = 4_000;

/**
 * Attempt 0, before any code is generated: tries a skill that solved the same task, or else a similar skill. If the most similar skill doesn't fit
 * directly, the model is asked for a wrapper.
 *
 * Returns null if there is no such skill, or if the model found no arguments or wrapper. Every use is recorded, even a failed one.
 */
export async function reuseSkill(context: RolloutContext): Promise<Attempt | null> {
  const skill = await findSkill(context);
  if (skill === null) return null;
  if (skill.isToWrap) return wrapSkill(context, skill);
  const { code, binding } = await answerOf(context, skill);
  if (code === null) {
    await recordFailedBinding(context, skill);
    return null;
  }
  const asked = addCost(NO_COST, binding ?? NO_COST);
  const said = {
    ...NOTHING_SAID,
    attempt: 0,
    skill: `${skill.name}@${skill.version}`,
    ofSkill: skill.ofSkill,
    ...asked,
    scripted: skill.scripted || asked.scripted,
  };
  return tryAnswer(context, said, code, {
    load: (text) => bundledCode(text, skill.needed, skill.dependencies ?? []),
    template: skill.template,
    alsoRecord: (attempt, ran) => noteUse(context, skill, howItWent(context, attempt, ran)),
  });
}

/** Finds a skill, and journals it. If none is found, nothing is journaled, so another worker searches again after a crash at this point. */
async function findSkill(context: RolloutContext): Promise<ReusableSkill | null> {
  const { steps, spec, deps } = context;
  const { off, preferSkills, layers, readOnly } = spec.memory;
  if (off || !preferSkills || !layers.includes('procedural')) return null;
  const journaled = steps.replay('a0.skill') as ReusableSkill | undefined;
  if (journaled || steps.begun) return journaled ?? null;
  const found = await findReusable(context);
  if (found === null) return null;
  const { name, version, scope, scripted } = found.skill;
  return steps.run('a0.skill', 'skill', async () => {
    if (!readOnly) await deps.procedural.countOffers([{ ...scope, name, version }]);
    return { value: found.skill, summary: `${name}@${version} ${found.how}`, scripted };
  });
}

async function findReusable(context: RolloutContext): Promise<{ skill: ReusableSkill; how: string } | null> {
  const { deps, scope, fingerprint, spec } = context;
  const { enabled, preferSkills, skillSearchThreshold: similarityMin } = await context.settings();
  if (!enabled || !preferSkills) return null;
  for (const skill of await skillsThatSolved(fingerprint, scope, deps)) {
    const reusable = await reusableOf(skill, context);
    if (reusable) return { skill: reusable, how: 'solved this task before' };
  }
  const near = await searchSkills(deps.procedural, scope, { text: spec.prompt, limit: CANDIDATES_MAX, similarityMin });
  for (const { skill, similarity } of near) {
    const reusable = await reusableOf(skill, context);
    if (reusable) return { skill: reusable, how: `is near the task (${similarity.toFixed(2)})` };
  }
  const [nearest] = near;
  const wrappable = nearest === undefined ? null : await wrappableOf(nearest.skill, context);
  return wrappable === null ? null : { skill: wrappable, how: 'is near the task, but needs a wrapper' };
}

/** Skills of the narrowest owner come first. */
async function skillsThatSolved(fingerprint: string, reader: SkillReader, { procedural }: RolloutDeps): Promise<readonly Skill[]> {
  const views = new Map(ownersFor(reader).map((owner) => [`${owner.tenant} ${owner.agent}`, viewOf(owner, reader.user)]));
  return (await Promise.all([...views.values()].map((view) => procedural.byFingerprint(view, fingerprint)))).flat();
}

async function reusableOf(proven: Skill, { deps, spec, fingerprint }: RolloutContext): Promise<ReusableSkill | null> {
  const answer = adaptSkill(proven, spec.evaluator);
  if (answer === null || !takesCalls(proven, spec) || !isProven(proven, deps.checker)) return null;
  const skill = answer === 'needs_arguments' ? proven : asMember(proven, fingerprint);
  const loaded = skill && (await loadedOrNull(skill, deps));
  return loaded && reusableWith(skill, loaded);
}

async function wrappableOf(skill: Skill, context: RolloutContext): Promise<ReusableSkill | null> {
  if (!canBeWrapped(skill, context) || !isProven(skill, context.deps.checker)) return null;
  const loaded = await loadedOrNull(answerImporting([skill], skill.scope), context.deps);
  return loaded && { ...reusableWith(skill, loaded), isToWrap: true };
}

function reusableWith(skill: Skill, { needed, ...place }: Awaited<ReturnType<typeof loadedWith>>): ReusableSkill {
  return { ...kept(skill), ...place, needed: needed.map(kept), ofSkill: untrustedOfSkill(skill) };
}

function adaptSkill(skill: Pick<Skill, 'kind' | 'entryPoint' | 'code'>, evaluator: Evaluator): SkillAnswer | null {
  return skill.kind === 'function' ? rulesOf(evaluator).adapt(skill) : null;
}

/** Whether the skill can take the task's calls. If its function has another name than asked, cases or the signature in the prompt decide. */
function takesCalls(skill: Skill, { evaluator, prompt }: TaskSpec): boolean {
  const asked = rulesOf(evaluator).entryPoint;
  if (asked === undefined || asked === skill.entryPoint || skill.contract === undefined) return true;
  if (evaluator.kind === 'function_cases')
    return evaluator.cases.every((call) => takesCall(skill, call)) && hasShapesOf(skill, evaluator.cases);
  const { parameters } = skill.contract;
  const count = parameterCount(asked, `${evaluator.kind === 'python_tests' ? evaluator.setup : ''}\n${prompt}`);
  const isRest = parameters.some(({ passed }) => passed === 'rest');
  return count !== null && parameters.filter(({ required }) => required).length <= count && (isRest || count <= parameters.length);
}

/** Whether a case has the same types of arguments as a test of the skill. A public case must also have the same type of value. */
function hasShapesOf({ tests }: Skill, cases: Extract<Evaluator, { kind: 'function_cases' }>['cases']): boolean {
  const calls = tests.filter((test) => test.kind === 'call');
  if (calls.length === 0) return true;
  return cases.some(({ args, expected, public: isPublic }) =>
    calls.some(
      (test) =>
        test.args.length === args.length &&
        test.args.every((arg, at) => haveOneShape(arg, args[at]!)) &&
        (!isPublic || haveOneShape(test.expected, expected)),
    ),
  );
}

/** Whether two values have the same type. For lists, the first items decide. null fits any value, and an empty list fits any list. */
function haveOneShape(a: Json, b: Json): boolean {
  if (a === null || b === null) return true;
  if (!Array.isArray(a) || !Array.isArray(b)) return !Array.isArray(a) && !Array.isArray(b) && typeof a === typeof b;
  return a.length === 0 || b.length === 0 || haveOneShape(a[0]!, b[0]!);
}

const PARAMETER = /^\s*[A-Za-z_]\w*\s*(?::[^,=]*)?(?:=[^,]*)?$/;

/** The number of parameters in the signature of the function `name`, such as 2 for "solve(text, limit)". null if the text has no signature. */
function parameterCount(name: string, text: string): number | null {
  for (const [, inside = ''] of text.matchAll(new RegExp(`\\b${name}\\s*\\(([^()]*)\\)`, 'g'))) {
    const parts = inside.trim() === '' ? [] : inside.split(',');
    if (parts.every((part) => PARAMETER.test(part))) return parts.length;
  }
  return null;
}

function takesCall(
  skill: Skill,
  { args, kwargs }: { readonly args: readonly Json[]; readonly kwargs: Readonly<Record<string, Json>> },
): boolean {
  const { parameters = [] } = skill.contract ?? {};
  const rest = parameters.findIndex(({ passed }) => passed === 'rest');
  const positional = rest < 0 ? parameters : parameters.slice(0, rest);
  if (rest < 0 && args.length > positional.length) return false;
  const named = Object.fromEntries(positional.slice(0, args.length).map(({ name }, at) => [name, args[at]]));
  const others = rest < 0 ? {} : { [parameters[rest]!.name]: args.slice(positional.length) };
  return takesArguments(skill, { ...named, ...others, ...kwargs });
}

function takesArguments(...call: Parameters<typeof validateArguments>): boolean {
  try {
    validateArguments(...call);
    return true;
  } catch (error) {
    if (errorCode(error) === 'INVALID_ARGUMENT') return false;
    throw error;
  }
}

async function answerOf(context: RolloutContext, skill: ReusableSkill): Promise<{ code: string | null; binding: ModelAnswer | null }> {
  const answer = adaptSkill(skill, context.spec.evaluator);
  if (answer !== 'needs_arguments') return { code: answer?.code ?? null, binding: null };
  const binding = await askModel(context, 'a0.bind', 'bind', () => bindRequest(context.promptTask, skill));
  return { code: boundCode(skill, binding.text), binding };
}

/** A program that calls the skill with the model's arguments and prints the result. null if arguments are missing or don't fit. */
function boundCode(skill: ReusableSkill, answer: string): string | null {
  const read = readJsonAnswer(z.record(z.string(), Json), answer);
  if ('wrong' in read || Object.keys(read.data).length === 0) return null;
  if (skill.contract !== undefined && !takesArguments(skill, read.data)) return null;
  // A JSON string is also a Python string literal.
  const given = JSON.stringify(JSON.stringify(read.data));
  return `${skill.code}\n\n\nimport json as _json\n\nprint(${skill.entryPoint}(**_json.loads(${given})))`;
}

async function recordFailedBinding(context: RolloutContext, skill: ReusableSkill): Promise<void> {
  if (context.spec.memory.readOnly) return;
  await context.steps.run('a0.record', 'record', async () => {
    const failure = { input: inputOf(context), error: 'the model found no arguments for the skill in the task' };
    await noteUse(context, skill, { success: false, at: context.deps.clock.now(), failure });
    return { value: null, summary: `the model found no arguments for ${skill.name}` };
  });
}

/** Describes the use for the skill's record. A failure stores the prompt as its input, because people see failures but not hidden cases. */
function howItWent(context: RolloutContext, { judgement, at }: Attempt, { runs, results }: Ran): HowItWent {
  const success = judgement.verdict === 'AC';
  if (!success) return { success, at, failure: { input: inputOf(context), error: judgement.reason.slice(0, FAILURE_CHARS_MAX) } };
  const given = runs.map((run) => ({ ...run, code: undefined, tests: undefined }));
  const gave = results.map(({ value, stdout }) => ({ value: value ?? null, stdout }));
  return { success, at, inputDigest: contentDigest([given, context.spec.files]), outputDigest: contentDigest(gave) };
}

const inputOf = ({ spec }: RolloutContext) => spec.prompt.slice(0, FAILURE_CHARS_MAX);

/** `fellBack`: the skill failed, and the model wrote the code instead. */
async function noteUse(
  { deps, tenant, rolloutId, scope, fingerprint, spec }: RolloutContext,
  skill: ReusableSkill,
  went: HowItWent,
): Promise<void> {
  const more = { ...went, ...(went.success ? {} : { fellBack: true }), fingerprint, cue: spec.prompt };
  await deps.outbox.put(tenant, `${rolloutId}.a0.use`, useOf(skill, scope, more));
}
