import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { Evaluator } from '@etude/contracts/task';
import type { SkillAnswer } from '../evaluation/evaluator.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { neededSkills } from '../skills/life/call-graph.js';
import { ownersFor, searchSkills, type SkillReader, viewOf } from '../skills/life/find-skill.js';
import { untrustedOfSkill } from '../skills/life/marks.js';
import { isProven } from '../skills/proof/proof.js';
import type { RolloutContext, RolloutDeps } from './rollout-context.js';

const CANDIDATES_MAX = 3;

type KeptSkill = Omit<Skill, 'tests' | 'cues' | 'evidence'>;
const kept = ({ tests: _tests, cues: _cues, evidence: _evidence, ...skill }: Skill): KeptSkill => skill;

/** As it is journaled: what is run later is what was looked at. */
export interface ReusableSkill extends KeptSkill {
  /** In the order of loading. */
  readonly needed: readonly KeptSkill[];
  /** Kind of sandbox that has the packages of all of them; absent: any. */
  readonly template?: string;
  /** What is not trusted of it. */
  readonly ofSkill: readonly string[];
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

/** null also where what it needs can't be brought in any more, or no sandbox has its packages: then the task is solved without. */
async function reusableOf(skill: Skill, { deps, spec }: RolloutContext): Promise<ReusableSkill | null> {
  if (adaptSkill(skill, spec.evaluator) === null || !isProven(skill, deps.checker)) return null;
  try {
    const needed = await neededSkills(deps.procedural, skill, (one) => isProven(one, deps.checker));
    const packages = [...new Set([skill, ...needed].flatMap((one) => one.packages ?? []))];
    const template = packages.length === 0 ? undefined : deps.templateFor(packages);
    const found = { ...kept(skill), needed: needed.map(kept), ofSkill: untrustedOfSkill(skill) };
    return template === undefined ? found : { ...found, template };
  } catch (error) {
    if (errorCode(error) === 'FAILED_PRECONDITION') return null;
    throw error;
  }
}

/** How a skill answers a task; null where it can't. */
export function adaptSkill(skill: Pick<Skill, 'kind' | 'entryPoint' | 'code'>, evaluator: Evaluator): SkillAnswer | null {
  return skill.kind === 'function' ? rulesOf(evaluator).adapt(skill) : null;
}
