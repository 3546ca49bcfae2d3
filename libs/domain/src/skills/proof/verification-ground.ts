import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { activeVersion } from '../life/decisions.js';
import { dependencyOn } from './bundle-code.js';
import { isPinOf, neededSkills, refusalOf } from '../life/call-graph.js';
import { isReadBy, searchSkills } from '../life/find-skill.js';
import { isPruning } from '../life/prune.js';

/** Everything that a verification looks at beside the skill. */
export interface VerificationGround {
  /** The active version that this one would replace: it has to pass that one's tests as well. */
  readonly replaced: Skill | null;
  /** Versions whose tests that one had to pass, and so on back: this one has to pass them as well. Newest first. */
  readonly earlier: readonly Skill[];
  /** Skills that it calls, at any depth, in the order of loading. */
  readonly needed: readonly Skill[];
  /**
   * Active skills that call it, and that whoever reads it can read as well: their tests have to pass with this version in place of the
   * one they call. Those of others stay with the version that they call until one that is pinned to this one has passed.
   */
  readonly dependents: readonly DependentSkill[];
  /** Skills that read much the same, most similar first. */
  readonly similar: readonly SimilarSkill[];
}

export interface DependentSkill {
  readonly skill: Skill;
  /** The same skill, pinned to this version. */
  readonly repinned: Skill;
  /** What it then needs, in the order of loading. */
  readonly needed: readonly Skill[];
}

/** A skill that reads much the same. */
export interface SimilarSkill {
  readonly skill: Skill;
  /** Calibrated, of name and description. */
  readonly similarity: number;
  /** What it calls, in the order of loading. */
  readonly needed: readonly Skill[];
}

/** Two that are less alike than this do different things. */
const SIMILARITY_MIN = 0.85;
const SIMILAR_MAX = 3;

type IsProven = (skill: Skill) => boolean;

/** @throws EtudeError FAILED_PRECONDITION where what it calls can't be brought in, MEMORY_UNAVAILABLE */
export async function gatherGround(skill: Skill, procedural: ProceduralMemory, isProven?: IsProven): Promise<VerificationGround> {
  const needed = await neededSkills(procedural, skill, isProven);
  const [replaced, dependents, similar] = await Promise.all([
    activeVersion(procedural, skill),
    dependentsOf(skill, needed, procedural, isProven),
    similarTo(skill, procedural, isProven),
  ]);
  return { replaced, earlier: replaced === null ? [] : await earlierVersions(replaced, procedural), needed, dependents, similar };
}

async function dependentsOf(
  skill: Skill,
  needed: readonly Skill[],
  procedural: ProceduralMemory,
  isProven?: IsProven,
): Promise<readonly DependentSkill[]> {
  const calling = (await activeDependents(skill, procedural)).filter(({ scope }) => isReadBy(scope, skill.scope));
  return Promise.all(
    calling.map(async (dependent) => {
      const others = (dependent.dependencies ?? []).filter((pin) => !isPinOf(pin, skill));
      const rest = await neededSkills(procedural, { ...dependent, dependencies: others }, isProven);
      const repinned = { ...dependent, dependencies: [...others, dependencyOn(skill)] };
      return { skill: dependent, repinned, needed: withoutRepeats([...rest, ...needed, skill]) };
    }),
  );
}

/** Active skills that call a version of this one. */
export async function activeDependents({ name, scope }: Skill, registry: SkillRegistry): Promise<readonly Skill[]> {
  return (await registry.dependents({ ...scope, name })).filter(({ status }) => status === 'active');
}

function withoutRepeats(skills: readonly Skill[]): readonly Skill[] {
  return [...new Map(skills.map((skill) => [JSON.stringify(dependencyOn(skill)), skill])).values()];
}

async function similarTo(skill: Skill, procedural: ProceduralMemory, isProven?: IsProven): Promise<readonly SimilarSkill[]> {
  if (skill.kind !== 'function') return [];
  const text = `${skill.name.replaceAll('_', ' ')} ${skill.description}`;
  // Its own earlier versions are among the most similar.
  const found = await searchSkills(procedural, skill.scope, { text, limit: SIMILAR_MAX + 1, similarityMin: SIMILARITY_MIN });
  const others = found.filter((hit) => hit.skill.kind === 'function' && hit.skill.name !== skill.name).slice(0, SIMILAR_MAX);
  const similar = others.map(async ({ skill: other, similarity }) => {
    const needed = await neededSkills(procedural, other, isProven).catch(refusalOf);
    // One whose own calls can't be made has no results to compare.
    return typeof needed === 'string' ? [] : [{ skill: other, similarity, needed }];
  });
  return (await Promise.all(similar)).flat();
}

/** Versions that a new version is held to beside the one that it replaces. */
const VERSIONS_MAX = 20;

/**
 * The versions whose tests this one had to pass, by its evidence, newest first. One that was archived by a decision binds nobody any more;
 * pruning is none. Without a proof there is nothing to go by.
 *
 * @param skill in use; its own tests are not among them
 * @throws EtudeError MEMORY_UNAVAILABLE
 */
async function earlierVersions(skill: Skill, registry: Pick<SkillRegistry, 'versions'>): Promise<readonly Skill[]> {
  const kept = (skill.proof?.kept ?? []).filter((pin) => isPinOf(pin, skill));
  const versions = kept.length === 0 ? [] : await registry.versions(skill.scope, skill.name);
  const isKept = ({ version, digest }: Skill) => kept.some((pin) => pin.version === version && pin.digest === digest);
  return versions.filter((one) => isKept(one) && !isWithdrawn(one)).slice(0, VERSIONS_MAX);
}

function isWithdrawn({ status, history = [] }: Skill): boolean {
  return status === 'archived' && !isPruning(history.findLast(({ to }) => to === 'archived')?.reason ?? '');
}
