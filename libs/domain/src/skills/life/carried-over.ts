import { EtudeError } from '@etude/contracts/errors';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { SkillWords, StoreSkillOptions } from '../../ports/memory.js';
import { marksOf, reasonsNotTrusted, sourceOf, untrustedAmong } from '../../trust/sources.js';
import { canonicalJson, codeDigest, distinct, hasHiddenTests, skillDigest } from '../content-digest.js';
import { GONE, LIVING, newSkill, wasOnlyTold } from './skill-life.js';

/**
 * The existing version with the content of the given skill. null if a new version is needed. `changed` is this version with the sources and marks
 * (reasons for a review) of both skills, or null if these add nothing. An active version gets no first mark. Instead, the same content from an
 * untrusted source becomes another, marked version.
 *
 * @param own the owner's versions of the skill, newest first
 */
export function knownVersion(given: Skill, own: readonly Skill[], words: SkillWords = 'ignored') {
  const digest = skillDigest(given);
  const same = own.filter((version) => version.digest === digest);
  const worded = words === 'ignored' ? same : same.filter((version) => hasSameWords(version, given));
  if (worded.length === 0 && (words === 'kept' || same.some(({ status }) => LIVING.has(status)))) return null;
  const meant = worded.length === 0 ? same : worded;
  const marks = marksOf(given);
  const fitting = meant.filter((version) => marks.length === 0 || takesMarks(version));
  const version = fitting.find(({ status }) => status === 'active') ?? fitting.find(({ status }) => LIVING.has(status)) ?? fitting[0];
  return version === undefined ? null : { version, changed: LIVING.has(version.status) ? withSources(version, given) : null };
}

/** The author's words about a skill, which are not part of its content. */
const WORDS = ['description', 'tags', 'category', 'displayName', 'examplePrompts', 'metadata'] as const;

/** Whether both skills have the same words. Omitted held-out tests and metadata carry over, so they make no difference. */
function hasSameWords(stored: Skill, given: Skill): boolean {
  const asked: Skill = { ...given, metadata: given.metadata ?? stored.metadata };
  const isNew = joinedTests(stored.heldOut, given.heldOut).length > (stored.heldOut ?? []).length;
  return !isNew && WORDS.every((field) => canonicalJson(stored[field] ?? []) === canonicalJson(asked[field] ?? []));
}

const takesMarks = ({ status, untrusted = [] }: Skill) => status !== 'active' || untrusted.length > 0;

function withSources(version: Skill, given: Skill): Skill | null {
  const sources = [...new Set([...version.sources, ...given.sources])];
  const untrusted = [...new Set([...marksOf(version), ...marksOf(given)])];
  if (sources.length === version.sources.length && untrusted.length === (version.untrusted ?? []).length) return null;
  const updatedAt = Math.max(version.updatedAt, given.updatedAt);
  return { ...version, sources, updatedAt, ...(untrusted.length === 0 ? {} : { untrusted }) };
}

/**
 * The next version of a name, as it is first stored, with the members and marks of earlier versions.
 *
 * @param versions all versions of this name that the owner has, newest first
 * @param isMarked whether the tenant has a marked skill with this code
 * @throws EtudeError ABORTED if the edited version is not the newest
 */
export function nextVersion(given: Skill, versions: readonly Skill[], isMarked: boolean, options: StoreSkillOptions): Skill {
  if (options.baseVersion !== undefined) requireNewest(given.name, options.baseVersion, versions);
  const carried = withCarriedMarks(withCarriedMembers(given, versions), versions, options);
  return newSkill(
    withMarkOfCode(carried, isMarked && needsMarkOfCode(carried, versions, options)),
    (versions[0]?.version ?? 0) + 1,
    options,
  );
}

function requireNewest(name: string, baseVersion: number, versions: readonly Skill[]): void {
  const isKnown = versions.some(({ version }) => version === baseVersion);
  const newer = versions.find(({ version, status }) => version > baseVersion && status !== 'rejected');
  if (isKnown && newer === undefined) return;
  const why = !isKnown
    ? `skill "${name}" has no version ${baseVersion} to edit; the newest is ${versions[0]?.version ?? 'none'}`
    : `skill "${name}" changed since version ${baseVersion}: the newest is version ${newer?.version} by ${newer?.history?.[0]?.by ?? 'an unknown author'}; compare both (DiffSkill) and edit the newest`;
  throw new EtudeError('ABORTED', why, { field: 'base_version' });
}

/** Adds the held-out tests of the newest version, and keeps tests hidden that an earlier version hid. @param versions of the owner, newest first */
export function withCarriedTests(skill: Skill, versions: readonly Skill[]): Skill {
  const heldOut = joinedTests(versions[0]?.heldOut, skill.heldOut);
  const hidden = new Set(versions.filter(hasHiddenTests).flatMap((version) => version.tests.map(canonicalJson)));
  return {
    ...skill,
    ...(heldOut.length === 0 ? {} : { heldOut }),
    ...(skill.tests.some((test) => hidden.has(canonicalJson(test))) ? { hiddenTests: true } : {}),
  };
}

/** Keeps an earlier version's members, so that their names and tasks still run the skill with their arguments. @param versions newest first */
function withCarriedMembers(skill: Skill, versions: readonly Skill[]): Skill {
  const members = skill.members ?? versions.find((version) => version.members !== undefined)?.members;
  return members === undefined ? skill : { ...skill, members };
}

export function joinedTests(known: readonly SkillTest[] = [], more: readonly SkillTest[] = []): SkillTest[] {
  return distinct([...known, ...more]);
}

/** The mark of a copy for more readers. It says nothing against the code, and isn't passed on to other skills. */
export const PROMOTED_MARK = 'it was promoted, and approved for fewer readers only';

/** The mark of code that a marked skill of another owner has too. The mark names neither that owner nor the sources of that skill. */
export const SAME_CODE_MARK = 'its code is also that of a marked skill of this tenant';

/**
 * Adds the marks of the owner's earlier versions. A rejected or archived version counts only if it is the one that was edited, or has the same code.
 * An edit of a marked version is marked, even if a person approved that version. If a reviewer stores the version, nothing is added, because the
 * reviewer vouches for the whole content.
 */
export function withCarriedMarks(skill: Skill, versions: readonly Skill[], { baseVersion, isReviewed = false }: StoreSkillOptions): Skill {
  if (isReviewed) return skill;
  const code = codeDigest(skill);
  const before = versions.filter((version) => !GONE.has(version.status) || version.version === baseVersion || codeDigest(version) === code);
  return marked(skill, [...new Set([skill, ...before].flatMap(marksOf))]);
}

function needsMarkOfCode(skill: Skill, versions: readonly Skill[], { isReviewed = false }: StoreSkillOptions): boolean {
  if (isReviewed || marksOf(skill).length > 0) return false;
  const code = codeDigest(skill);
  return !versions.some((version) => version.status === 'active' && marksOf(version).length === 0 && codeDigest(version) === code);
}

/** The digest by which copies of marked code are recognised. null without such a mark: promotion, or being told, says nothing about the code. */
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
 * The untrusted sources of records that are learned while this skill is shown. A reviewer vouches only for one version of a skill, not for such
 * records. So the marks of a reviewed skill count here. A procedure that was only told counts even without a mark.
 */
export function untrustedOfSkill(skill: Skill): string[] {
  const named = untrustedAmong(skill.sources);
  if (named.length > 0) return named;
  const isMarked = marksOf(skill).some((mark) => mark !== PROMOTED_MARK);
  return isMarked || wasOnlyTold(skill) ? [`markedSkills/${skill.name}@${skill.version}`] : [];
}
