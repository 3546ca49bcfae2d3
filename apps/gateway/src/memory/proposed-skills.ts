import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { canonicalJson, skillDigest } from '@etude/domain/skills/content-digest';
import { GONE } from '@etude/domain/skills/life/skill-life';
import { pinnedTo } from '@etude/domain/skills/proof/bundle-code';
import type { ProposeSkill } from '@etude/memory/upkeep/imported-skill';
import type { CallContext } from '../calls/caller.js';
import { requireAuthor } from '../readers/readers.js';
import type { SkillDeps } from '../registration/skill-registration.js';

interface ProposalDeps extends Pick<SkillDeps, 'registration' | 'templateFor'> {
  readonly procedural: ProceduralMemory;
}

/**
 * Stores the skills of an import like any registration, then has them verified.
 *
 * @throws EtudeError from the returned function: as `SkillRegistration.store`; PERMISSION_DENIED for shared skills without the role;
 *   FAILED_PRECONDITION for packages that no sandbox has, or calls of skills that aren't active here
 */
export function proposedSkills(call: CallContext, { procedural, registration, templateFor }: ProposalDeps): ProposeSkill {
  const { tenant, name: by } = call;
  return async ({ skill, setAside }) => {
    requireAuthor(call, skill);
    const known = await procedural.versions(skill.scope, skill.name);
    const there = thereAlready(skill, known, setAside !== null);
    if (there !== undefined) {
      // The earlier import may have stopped before it added the job.
      await registration.requestVerification(there);
      return 'unchanged';
    }
    // Keeps the original time, so that an erasure of records up to that time still applies.
    const made = { by, at: skill.createdAt, ...(setAside === null ? {} : { setAside }) };
    if (setAside === null) templateFor(skill.packages ?? []);
    const candidate = setAside === null ? await pinnedHere(skill, procedural) : skill;
    const { version } = await registration.store(procedural, candidate, tenant, made);
    return known.some((one) => one.version === version) ? 'unchanged' : 'added';
  };
}

/** The stored version with the same content. Archived and rejected ones count only if the import sets the skill aside. */
function thereAlready(skill: Skill, known: readonly Skill[], isSetAside: boolean): Skill | undefined {
  const content = withoutPins(skill);
  return known.find((version) => (isSetAside || !GONE.has(version.status)) && withoutPins(version) === content);
}

/** Ignores the pinned versions of dependencies, which differ between installations. */
function withoutPins({ dependencies = [], ...content }: Skill): string {
  return canonicalJson([skillDigest(content), dependencies.map(({ name }) => name).toSorted()]);
}

/**
 * Pins called skills to their active versions here, by name. Called skills of the same import become active only by approval. Their caller
 * is refused until then, and must be imported again.
 *
 * @throws EtudeError FAILED_PRECONDITION
 */
function pinnedHere({ dependencies = [], ...unpinned }: Skill, procedural: ProceduralMemory): Promise<Skill> {
  return pinnedTo(
    dependencies.map(({ name }) => name),
    unpinned,
    procedural,
  );
}
