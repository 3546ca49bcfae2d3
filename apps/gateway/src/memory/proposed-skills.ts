import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { canonicalJson, skillDigest } from '@etude/domain/skills/content-digest';
import { GONE } from '@etude/domain/skills/life/skill-life';
import type { TemplateFor } from '@etude/domain/skills/life/skill-packages';
import { pinDependencies } from '@etude/domain/skills/proof/bundle-code';
import type { ProposeSkill } from '@etude/memory/upkeep/imported-skill';
import type { CallContext } from '../calls/caller.js';
import { requireAuthor } from '../readers/readers.js';
import type { SkillRegistration } from '../registration/skill-registration.js';
import { notActive } from '../skills/import-skills.js';

export interface ProposalDeps {
  readonly procedural: ProceduralMemory;
  readonly registration: SkillRegistration;
  /** Throws where no sandbox has the packages of a skill. */
  readonly templateFor: TemplateFor;
}

/**
 * Takes the skills of one import as any that is registered: stored when it is answered, then verified.
 *
 * @throws EtudeError from the answered function: as `SkillRegistration.store`; PERMISSION_DENIED for what more agents would read;
 *   FAILED_PRECONDITION for packages that no sandbox has, and for what calls a skill that is not active here
 */
export function proposedSkills(call: CallContext, { procedural, registration, templateFor }: ProposalDeps): ProposeSkill {
  const { tenant, name: by } = call;
  return async ({ skill, setAside }) => {
    requireAuthor(call, skill);
    const known = await procedural.versions(skill.scope, skill.name);
    const there = thereAlready(skill, known, setAside !== null);
    if (there !== undefined) {
      // The job of the import before may be what was lost.
      await registration.requestVerification(there);
      return 'unchanged';
    }
    // What an erasure forbids was made before it, and stays so.
    const made = { by, at: skill.createdAt, ...(setAside === null ? {} : { setAside }) };
    if (setAside === null) templateFor(skill.packages ?? []);
    const candidate = setAside === null ? await pinnedHere(skill, procedural) : skill;
    const { version } = await registration.store(procedural, candidate, tenant, made);
    return known.some((one) => one.version === version) ? 'unchanged' : 'added';
  };
}

/** What was archived or rejected is there for what is to be so as well; of all else the registration says how it comes back. */
function thereAlready(skill: Skill, known: readonly Skill[], isSetAside: boolean): Skill | undefined {
  const content = withoutPins(skill);
  return known.find((version) => (isSetAside || !GONE.has(version.status)) && withoutPins(version) === content);
}

/** Whatever versions of other skills it calls: here it is pinned to others than where it came from. */
function withoutPins({ dependencies = [], ...content }: Skill): string {
  return canonicalJson([skillDigest(content), dependencies.map(({ name }) => name).toSorted()]);
}

/**
 * Pinned to what it calls here, by name. What comes in with it is not active before somebody approved it, so that what calls it waits, and
 * is taken when the same is imported again.
 *
 * @throws EtudeError FAILED_PRECONDITION
 */
async function pinnedHere(skill: Skill, procedural: ProceduralMemory): Promise<Skill> {
  const { dependencies = [], ...unpinned } = skill;
  const names = dependencies.map(({ name }) => name);
  const missing = await notActive(procedural, skill.scope, names);
  if (missing.length > 0)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `${skill.name} waits: it calls ${missing.join(', ')}, not active here for everybody who reads ${skill.name}; have that approved, then import the same again`,
      { field: 'dependencies' },
    );
  const pinned = await pinDependencies(procedural, skill.scope, names, skill);
  return pinned.length === 0 ? unpinned : { ...unpinned, dependencies: pinned };
}
