import type { Skill } from '@etude/contracts/memory';
import type { StoreSkillOptions } from '../../ports/memory.js';
import { GONE, wasOnlyTold } from './skill-life.js';
import { codeDigest } from '../content-digest.js';
import { reasonsNotTrusted, sourceOf, untrustedAmong, withMarks } from '../../trust/sources.js';

/** On a copy for more readers: it says nothing against the code, and stays with the copy. */
export const PROMOTED_MARK = 'it was promoted, and approved for fewer readers only';

/** Says nothing of whose the other one is, or where it was learned. */
export const SAME_CODE_MARK = 'its code is also that of a marked skill of this tenant';

/**
 * The skill with the marks of its owner's versions before it: of all that are not rejected or archived, of the one that was edited,
 * and of each that has the same code but for comments and blank lines. An edit makes nothing trusted, whoever approved what was edited;
 * a reviewer who stores a version vouches for all that is in it.
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
  return marked(skill, [...new Set([skill, ...before].flatMap((version) => withMarks(version).untrusted ?? []))]);
}

/**
 * The digest under which marked code of the same tenant has to be looked for before this is stored; null where nothing has to be. A
 * reviewer vouches for it, a mark it has already is enough, and what its owner has in use without a mark is no news.
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

/** What its code is found by where that is marked; null where it is not. That words were told is no mark of the words: many may tell the same. */
export function markedCode(skill: Skill): string | null {
  const toldIn = reasonsNotTrusted(skill.sources.filter((name) => sourceOf(name)?.kind === 'procedures'));
  return marksOf(skill).some((mark) => mark !== PROMOTED_MARK && !toldIn.includes(mark)) ? codeDigest(skill) : null;
}

/** @param isMarked whether the tenant has a marked skill with this code */
export function withMarkOfCode(skill: Skill, isMarked: boolean): Skill {
  return isMarked ? marked(skill, [...new Set([...(skill.untrusted ?? []), SAME_CODE_MARK])]) : skill;
}

const marksOf = (skill: Skill) => withMarks(skill).untrusted ?? [];

function marked(skill: Skill, untrusted: readonly string[]): Skill {
  return untrusted.length === 0 ? skill : { ...skill, untrusted: [...untrusted] };
}

/**
 * What is not trusted of a skill, for whoever is shown it or uses it: a reviewer vouches for a version, not for what is written in its sight.
 * Words that were told are not either, also where they came in without a mark.
 */
export function untrustedOfSkill(skill: Skill): string[] {
  const named = untrustedAmong(skill.sources);
  if (named.length > 0) return named;
  const isMarked = (withMarks(skill).untrusted ?? []).some((mark) => mark !== PROMOTED_MARK);
  return isMarked || wasOnlyTold(skill) ? [`markedSkills/${skill.name}@${skill.version}`] : [];
}
