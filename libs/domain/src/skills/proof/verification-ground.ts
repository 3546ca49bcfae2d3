import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { activeVersion } from '../life/decisions.js';
import { dependencyOn } from './bundle-code.js';
import { contentOf, isPinOf, neededSkills, refusalOf } from '../life/call-graph.js';
import { isReadBy, searchSkills } from '../life/find-skill.js';

/** The other skills and versions that a verification looks at. */
export interface VerificationGround {
  /** The active version that the skill would replace, and whose tests it must pass too. null: there is none. */
  readonly replaced: Skill | null;
  /** The skills that it calls, at any depth, in the order of loading. */
  readonly needed: readonly Skill[];
  /**
   * Active callers that everybody who reads the skill can read too. Their tests must pass with this version in place of the called one.
   * Other callers keep the version that they call until they have a version that passed with this one.
   */
  readonly dependents: readonly DependentSkill[];
  /** Skills with a similar name and description, most similar first. */
  readonly similar: readonly SimilarSkill[];
}

export interface DependentSkill {
  readonly skill: Skill;
  /** The pins of the skill, to the verified version and to others. */
  readonly pins: readonly SkillDependency[];
  /** The skills that it needs with these pins, in the order of loading. */
  readonly needed: readonly Skill[];
}

export interface SimilarSkill {
  readonly skill: Skill;
  /** Calibrated similarity of names and descriptions. */
  readonly similarity: number;
  /** The skills that it needs, in the order of loading. */
  readonly needed: readonly Skill[];
}

/** Skills below this similarity are taken to do different things. */
const SIMILARITY_MIN = 0.85;
const SIMILAR_MAX = 3;

type IsProven = (skill: Skill) => boolean;

/** @throws EtudeError FAILED_PRECONDITION where a called skill can't be loaded, MEMORY_UNAVAILABLE */
export async function gatherGround(skill: Skill, procedural: ProceduralMemory, isProven: IsProven): Promise<VerificationGround> {
  const needed = await neededSkills(procedural, skill, isProven);
  const [replaced, dependents, similar] = await Promise.all([
    activeVersion(procedural, skill),
    dependentsOf(skill, needed, procedural, isProven),
    similarTo(skill, procedural, isProven),
  ]);
  return { replaced, needed, dependents, similar };
}

async function dependentsOf(
  skill: Skill,
  needed: readonly Skill[],
  procedural: ProceduralMemory,
  isProven: IsProven,
): Promise<readonly DependentSkill[]> {
  const calling = (await activeDependents(skill, procedural)).filter(({ scope }) => isReadBy(scope, skill.scope));
  return Promise.all(
    calling.map(async (dependent) => {
      const others = (dependent.dependencies ?? []).filter((pin) => !isPinOf(pin, skill));
      const rest = await neededSkills(procedural, { ...dependent, dependencies: others }, isProven);
      return { skill: dependent, pins: [...others, dependencyOn(skill)], needed: withoutRepeats([...rest, ...needed, skill]) };
    }),
  );
}

/** Active skills that call a version of this one. */
export async function activeDependents({ name, scope }: Skill, registry: SkillRegistry): Promise<readonly Skill[]> {
  return (await registry.dependents({ ...scope, name })).filter(({ status }) => status === 'active');
}

function withoutRepeats(skills: readonly Skill[]): readonly Skill[] {
  return [...new Map(skills.map((skill) => [contentOf(dependencyOn(skill)), skill])).values()];
}

async function similarTo(skill: Skill, procedural: ProceduralMemory, isProven: IsProven): Promise<readonly SimilarSkill[]> {
  if (skill.kind !== 'function') return [];
  const text = `${skill.name.replaceAll('_', ' ')} ${skill.description}`;
  // One more than needed, since the skill's own active version is among the most similar.
  const found = await searchSkills(procedural, skill.scope, { text, limit: SIMILAR_MAX + 1, similarityMin: SIMILARITY_MIN });
  const others = found.filter((hit) => hit.skill.kind === 'function' && hit.skill.name !== skill.name).slice(0, SIMILAR_MAX);
  const similar = others.map(async ({ skill: other, similarity }) => {
    const needed = await neededSkills(procedural, other, isProven).catch(refusalOf);
    // A skill whose callees can't be loaded has no results to compare.
    return typeof needed === 'string' ? [] : [{ skill: other, similarity, needed }];
  });
  return (await Promise.all(similar)).flat();
}
