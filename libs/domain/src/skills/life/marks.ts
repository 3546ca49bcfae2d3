import type { Skill } from '@etude/contracts/memory';
import type { StoreSkillOptions } from '../../ports/memory.js';
import { GONE, wasOnlyTold } from './skill-life.js';
import { codeDigest } from '../content-digest.js';
import { marksOf, reasonsNotTrusted, sourceOf, untrustedAmong } from '../../trust/sources.js';

/** The mark of a copy for more readers. It says nothing against the code, and isn't passed on to other skills. */
export const PROMOTED_MARK = 'it was promoted, and approved for fewer readers only';

/** The mark does not tell whose the other skill is, or where it was learned. */
export const SAME_CODE_MARK = 'its code is also that of a marked skill of this tenant';

/**
 * The skill with the marks of its owner's earlier versions: those that are not rejected or archived, the one that was edited, and each
 * with the same code but for comments and blank lines. An edit makes nothing trusted, even where a person approved the edited version. A
 * reviewer who stores a version vouches for its whole content.
 *
 * @param versions all of this name that the agent has
 */
export function withCarriedMarks(skill: Skill, versions: readonly Skill[], { baseVersion, isReviewed = false }: StoreSkillOptions): Skill {
  if (isReviewed) return skill;
  const code = codeDigest(skill);
  const before = versions.filter(
    (version) =>
      version.scope.user === skill.scope.user &&
      (!GONE.has(version.status) || version.version === baseVersion || codeDigest(version) === code),
  );
  return marked(skill, [...new Set([skill, ...before].flatMap(marksOf))]);
}

/**
 * The digest by which marked code of the same tenant is looked up before this skill is stored. null where no look-up is needed: a
 * reviewer stores it, it is marked already, or its owner uses the same code without a mark.
 */
export function codeToLookFor(skill: Skill, versions: readonly Skill[], { isReviewed = false }: StoreSkillOptions): string | null {
  if (isReviewed || marksOf(skill).length > 0) return null;
  const code = codeDigest(skill);
  const isInUse = versions.some(
    (version) =>
      version.scope.user === skill.scope.user &&
      version.status === 'active' &&
      marksOf(version).length === 0 &&
      codeDigest(version) === code,
  );
  return isInUse ? null : code;
}

/** The digest by which a copy of marked code is recognised; null without a mark. Being told doesn't count: many may tell the same. */
export function markedCode(skill: Skill): string | null {
  const toldIn = reasonsNotTrusted(skill.sources.filter((name) => sourceOf(name)?.kind === 'procedures'));
  return marksOf(skill).some((mark) => mark !== PROMOTED_MARK && !toldIn.includes(mark)) ? codeDigest(skill) : null;
}

/** @param isMarked whether the tenant has a marked skill with this code */
export function withMarkOfCode(skill: Skill, isMarked: boolean): Skill {
  return isMarked ? marked(skill, [...new Set([...(skill.untrusted ?? []), SAME_CODE_MARK])]) : skill;
}

function marked(skill: Skill, untrusted: readonly string[]): Skill {
  return untrusted.length === 0 ? skill : { ...skill, untrusted: [...untrusted] };
}

/**
 * The untrusted sources that a skill passes on to everything that is learned where it was shown. A reviewer vouches for the version alone,
 * so its marks still count here. A procedure that was only told counts even without a mark.
 */
export function untrustedOfSkill(skill: Skill): string[] {
  const named = untrustedAmong(skill.sources);
  if (named.length > 0) return named;
  const isMarked = marksOf(skill).some((mark) => mark !== PROMOTED_MARK);
  return isMarked || wasOnlyTold(skill) ? [`markedSkills/${skill.name}@${skill.version}`] : [];
}
