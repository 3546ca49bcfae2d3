import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { neededSkills } from '../skills/life/call-graph.js';
import type { NeededSkill } from '../skills/proof/bundle-code.js';
import { untrustedOfSkill } from '../skills/life/marks.js';
import { ownersFor, searchSkills, type SkillReader, viewOf } from '../skills/life/find-skill.js';
import { isProven } from '../skills/proof/proof.js';
import type { RolloutContext, RolloutDeps } from './rollout-context.js';
import type { Evaluator } from '@etude/contracts/task';
import type { SkillAnswer } from '../evaluation/evaluator.js';
import { rulesOf } from '../evaluation/evaluators.js';

const CANDIDATES_MAX = 3;

/** As it is journaled: what is run later is what was looked at. */
export interface ReusableSkill
  extends NeededSkill, Pick<Skill, 'description' | 'parameters' | 'contract' | 'packages' | 'model' | 'scripted'> {
  /** In the order of loading. */
  readonly needed: readonly NeededSkill[];
  /** Packages of all of them. */
  readonly allPackages: readonly string[];
  /** What is not trusted of it; absent where nothing is. */
  readonly untrusted?: readonly string[];
}

/**
 * A skill to try before any code is generated: one that solved this very task, else the nearest from the similarity on that the
 * agent's settings name. Only what is active and proven, with all that it needs; null where there is none.
 */
export async function findReusable(context: RolloutContext): Promise<{ skill: ReusableSkill; how: string } | null> {
  const { deps, scope, fingerprint, spec } = context;
  const { enabled, preferSkills, skillSearchThreshold: similarityMin } = await context.settings();
  if (!enabled || !preferSkills) return null;
  for (const skill of await skillsThatSolved(fingerprint, scope, deps)) {
    const reusable = await reusableOf(skill, context);
    if (reusable) return { skill: reusable, how: 'solved this task before' };
  }
  const near = await searchSkills(deps.procedural, scope, { text: spec.prompt, limit: CANDIDATES_MAX, similarityMin });
  for (const { skill, similarity } of near) {
    const reusable = similarity >= similarityMin ? await reusableOf(skill, context) : null;
    if (reusable) return { skill: reusable, how: `is near the task (${similarity.toFixed(2)})` };
  }
  return null;
}

/** Narrowest owner first. */
async function skillsThatSolved(fingerprint: string, reader: SkillReader, { procedural }: RolloutDeps): Promise<readonly Skill[]> {
  const views = new Map(ownersFor(reader).map((owner) => [`${owner.tenant} ${owner.agent}`, viewOf(owner, reader.user)]));
  return (await Promise.all([...views.values()].map((view) => procedural.byFingerprint(view, fingerprint)))).flat();
}

async function reusableOf(skill: Skill, { deps, spec }: RolloutContext): Promise<ReusableSkill | null> {
  if (adaptSkill(skill, spec.evaluator) === null || !isProven(skill, deps.checker)) return null;
  const needed = await neededOf(skill, deps);
  if (needed === null) return null;
  const allPackages = [...new Set([skill, ...needed].flatMap(({ packages = [] }) => packages))];
  if (!areOffered(allPackages, deps.templateFor)) return null;
  const { description, parameters, contract, packages, model, scripted } = skill;
  const untrusted = untrustedOfSkill(skill);
  return {
    ...partOf(skill),
    description,
    parameters,
    ...(contract ? { contract } : {}),
    ...(packages ? { packages } : {}),
    model,
    scripted,
    needed: needed.map(partOf),
    allPackages,
    ...(untrusted.length === 0 ? {} : { untrusted }),
  };
}

/** null where one of them can't be brought in any more: then the task is solved without. */
async function neededOf(skill: Skill, { procedural, checker }: RolloutDeps): Promise<readonly Skill[] | null> {
  try {
    return await neededSkills(procedural, skill, (one) => isProven(one, checker));
  } catch (error) {
    if (errorCode(error) === 'FAILED_PRECONDITION') return null;
    throw error;
  }
}

function partOf({ name, version, scope, kind, digest, code, entryPoint, dependencies }: Skill): NeededSkill {
  return { name, version, scope, kind, digest, code, entryPoint, ...(dependencies ? { dependencies } : {}) };
}

/** Images change: what a sandbox had when the skill was verified may be gone. */
function areOffered(packages: readonly string[], templateFor: RolloutDeps['templateFor']): boolean {
  if (packages.length === 0 || templateFor === undefined) return packages.length === 0;
  try {
    templateFor(packages);
    return true;
  } catch (error) {
    if (errorCode(error) === 'FAILED_PRECONDITION') return false;
    throw error;
  }
}

/** How a skill answers a task; null where it can't. */
export function adaptSkill(skill: Pick<Skill, 'kind' | 'entryPoint' | 'code'>, evaluator: Evaluator): SkillAnswer | null {
  return skill.kind === 'function' ? rulesOf(evaluator).adapt(evaluator, skill) : null;
}

/** What the model is asked for, as `bindRequest` says it. */
export function bindingQuestion(skill: Pick<Skill, 'entryPoint'>, binds: 'arguments' | 'stdin'): string {
  return binds === 'stdin'
    ? 'its key "stdin" holds the text that the program has to read from standard input'
    : `its keys are the names of the parameters of \`${skill.entryPoint}\`, its values what the task says they are`;
}

/** The skill with its parameters, as a program that prints the result. Null where the model's answer binds nothing. */
export function boundCode(skill: Pick<Skill, 'entryPoint' | 'code'>, binds: 'arguments' | 'stdin', answer: string): string | null {
  const bound = jsonObjectIn(answer);
  if (bound === null || Object.keys(bound).length === 0) return null;
  if (binds === 'arguments')
    return `${skill.code}\n\n\nimport json as _json\n\nprint(${skill.entryPoint}(**_json.loads(${pythonText(JSON.stringify(bound))})))`;
  if (typeof bound['stdin'] !== 'string') return null;
  return `import io as _io\nimport sys as _sys\n\n_sys.stdin = _io.StringIO(${pythonText(bound['stdin'])})\n\n${skill.code}`;
}

/** A JSON string is a Python string literal. */
function pythonText(text: string): string {
  return JSON.stringify(text);
}

/** The first JSON object in a model's answer, fenced or not; null where there is none that parses. */
export function jsonObjectIn(text: string): Record<string, unknown> | null {
  const from = text.indexOf('{');
  const to = text.lastIndexOf('}');
  if (from < 0 || to < from) return null;
  try {
    const parsed: unknown = JSON.parse(text.slice(from, to + 1));
    return parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed) ? (parsed as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
