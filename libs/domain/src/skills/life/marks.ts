import type { Skill } from '@etude/contracts/memory';
import type { StoreSkillOptions } from '../../ports/memory.js';
import { marksOf, reasonsNotTrusted, sourceOf, untrustedAmong } from '../../trust/sources.js';
import { codeDigest } from '../content-digest.js';
import { GONE, wasOnlyTold } from './skill-life.js';

/** The mark of a copy for more readers. It says nothing against the code, and isn't passed on to other skills. */
export const PROMOTED_MARK = 'it was promoted, and approved for fewer readers only';

/** The mark names neither the owner nor the sources of the other skill. */
export const SAME_CODE_MARK = 'its code is also that of a marked skill of this tenant';

/**
 * Adds the marks of the owner's earlier versions. A rejected or archived version counts only if it was edited or has the same code. An edit
 * of a marked version is marked, even if a person approved that version. A reviewer who stores a version vouches for its whole content, so
 * nothing is added.
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

/** Whether marked code elsewhere marks this skill: no reviewer stores it, it has no mark, and its owner doesn't use its code without one. */
export function needsMarkOfCode(skill: Skill, versions: readonly Skill[], { isReviewed = false }: StoreSkillOptions): boolean {
  if (isReviewed || marksOf(skill).length > 0) return false;
  const code = codeDigest(skill);
  const own = versions.filter(({ scope, status }) => scope.user === skill.scope.user && status === 'active');
  return !own.some((version) => marksOf(version).length === 0 && codeDigest(version) === code);
}

/**
 * The digest by which a copy of marked code is recognised; null without a mark. The mark of a told procedure doesn't count, because several
 * people may tell the same words.
 */
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
 * The untrusted sources of records that are learned while this skill is shown. A reviewer vouches for one version only, so the marks of a
 * reviewed skill count here. A procedure that was only told counts even without a mark.
 */
export function untrustedOfSkill(skill: Skill): string[] {
  const named = untrustedAmong(skill.sources);
  if (named.length > 0) return named;
  const isMarked = marksOf(skill).some((mark) => mark !== PROMOTED_MARK);
  return isMarked || wasOnlyTold(skill) ? [`markedSkills/${skill.name}@${skill.version}`] : [];
}
