import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { Evaluator } from '@etude/contracts/task';
import type { SkillAnswer } from '../evaluation/evaluator.js';
import { rulesOf } from '../evaluation/evaluators.js';
import { ownersFor, searchSkills, type SkillReader, viewOf } from '../skills/life/find-skill.js';
import { untrustedOfSkill } from '../skills/life/marks.js';
import { isProven } from '../skills/proof/proof.js';
import { loadedWith } from '../skills/proof/use-skill.js';
import type { RolloutContext, RolloutDeps } from './rollout-context.js';

const CANDIDATES_MAX = 3;

type KeptSkill = Omit<Skill, 'tests' | 'cues' | 'evidence'>;
const kept = ({ tests: _tests, cues: _cues, evidence: _evidence, ...skill }: Skill): KeptSkill => skill;

/** A skill as it is journaled, so that the code that runs is the code that was checked. */
export interface ReusableSkill extends KeptSkill {
  /** The skills that this one calls, in the order of loading. */
  readonly needed: readonly KeptSkill[];
  /** The sandbox template that has the packages of the skill and all it calls. Absent: the default one. */
  readonly template?: string;
  /** The untrusted sources of the skill. */
  readonly ofSkill: readonly string[];
}

/**
 * Finds a skill to try before any code is generated: one that solved this very task, else the most similar one above the agent's threshold.
 * The skill and all it calls have to be active and proven. null if there is none.
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
    const reusable = await reusableOf(skill, context);
    if (reusable) return { skill: reusable, how: `is near the task (${similarity.toFixed(2)})` };
  }
  return null;
}

/** Skills that solved a task with this fingerprint, those of the narrowest owner first. */
async function skillsThatSolved(fingerprint: string, reader: SkillReader, { procedural }: RolloutDeps): Promise<readonly Skill[]> {
  const views = new Map(ownersFor(reader).map((owner) => [`${owner.tenant} ${owner.agent}`, viewOf(owner, reader.user)]));
  return (await Promise.all([...views.values()].map((view) => procedural.byFingerprint(view, fingerprint)))).flat();
}

/** null if the skill doesn't fit, isn't proven, or needs a missing skill or package. The task is then solved without the skill. */
async function reusableOf(skill: Skill, { deps, spec }: RolloutContext): Promise<ReusableSkill | null> {
  if (adaptSkill(skill, spec.evaluator) === null || !isProven(skill, deps.checker)) return null;
  try {
    const { needed, ...place } = await loadedWith(skill, deps);
    return { ...kept(skill), ...place, needed: needed.map(kept), ofSkill: untrustedOfSkill(skill) };
  } catch (error) {
    if (errorCode(error) === 'FAILED_PRECONDITION') return null;
    throw error;
  }
}

/** How a skill can answer a task; null if it can't. */
export function adaptSkill(skill: Pick<Skill, 'kind' | 'entryPoint' | 'code'>, evaluator: Evaluator): SkillAnswer | null {
  return skill.kind === 'function' ? rulesOf(evaluator).adapt(skill) : null;
}
