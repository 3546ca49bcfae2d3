import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillWords } from '../../ports/memory.js';
import { marksOf } from '../../trust/sources.js';
import { canonicalJson, hasHiddenTests, skillDigest } from '../content-digest.js';
import { LIVING } from './skill-life.js';
import { EtudeError } from '@etude/contracts/errors';

/** A skill with these statuses isn't used before its marks are looked at. */
const UNDECIDED: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'pending_review']);

/** The existing version that equals a skill to be stored. `changed`: that version with added sources and marks; null: nothing is added. */
export interface KnownVersion {
  readonly version: Skill;
  readonly changed: Skill | null;
}

/**
 * The existing version with the content of the given skill; null where a new version is needed. New sources and their marks are added to
 * it. An active version without a mark stays as it is: the same content from an untrusted source becomes a marked version beside it.
 *
 * @param own the owner's versions, newest first
 * @param words see `StoreSkillOptions`
 */
export function knownVersion(given: Skill, own: readonly Skill[], words: SkillWords = 'ignored'): KnownVersion | null {
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

/** Whether a new version would say the same. Held-out tests and metadata that are left out carry over, so they are no difference. */
function hasSameWords(stored: Skill, given: Skill): boolean {
  const asked: Skill = { ...given, metadata: given.metadata ?? stored.metadata };
  const isNew = joinedTests(stored.heldOut, given.heldOut).length > (stored.heldOut ?? []).length;
  return !isNew && WORDS.every((field) => canonicalJson(stored[field] ?? []) === canonicalJson(asked[field] ?? []));
}

function takesMarks(version: Skill): boolean {
  return UNDECIDED.has(version.status) || !LIVING.has(version.status) || (version.untrusted ?? []).length > 0;
}

/** null: the version has all sources and marks already. */
function withSources(version: Skill, given: Skill): Skill | null {
  const sources = [...new Set([...version.sources, ...given.sources])];
  const untrusted = [...new Set([...marksOf(version), ...marksOf(given)])];
  if (sources.length === version.sources.length && untrusted.length === (version.untrusted ?? []).length) return null;
  const updatedAt = Math.max(version.updatedAt, given.updatedAt);
  return { ...version, sources, updatedAt, ...(untrusted.length === 0 ? {} : { untrusted }) };
}

/**
 * The error for an edit of a version behind which there is another one, rejected ones aside; it names the newest and its author.
 *
 * @param versions all of the same owner and user, newest first; an editor must not hear of another user's
 */
export function staleEdit(name: string, baseVersion: number, versions: readonly Skill[]): EtudeError | null {
  const isKnown = versions.some(({ version }) => version === baseVersion);
  const newer = versions.find(({ version, status }) => version > baseVersion && status !== 'rejected');
  if (isKnown && newer === undefined) return null;
  const why = !isKnown
    ? `skill "${name}" has no version ${baseVersion} to edit; the newest is ${versions[0]?.version ?? 'none'}`
    : `skill "${name}" changed since version ${baseVersion}: the newest is version ${newer?.version} by ${newer?.history?.[0]?.by ?? 'nobody that is known'}; compare the two (DiffSkill) and make the edit on it`;
  return new EtudeError('ABORTED', why, { field: 'base_version' });
}

/**
 * The version with everything that carries over from earlier ones: held-out tests, and the note that some tests are hidden. The note
 * doesn't depend on the author, since an edit keeps the tests of the edited version.
 *
 * @param versions all of this name that the owner has, newest first
 */
export function withCarriedTests(skill: Skill, versions: readonly Skill[]): Skill {
  const heldOut = joinedTests(versions[0]?.heldOut, skill.heldOut);
  return {
    ...skill,
    ...(heldOut.length === 0 ? {} : { heldOut }),
    ...(hasTestHiddenIn(versions, skill) ? { hiddenTests: true } : {}),
  };
}

/** Both lists without repeats. */
export function joinedTests(known: readonly SkillTest[] = [], more: readonly SkillTest[] = []): SkillTest[] {
  return [...new Map([...known, ...more].map((test) => [canonicalJson(test), test])).values()];
}

function hasTestHiddenIn(versions: readonly Skill[], { tests }: Skill): boolean {
  const hidden = new Set(versions.filter(hasHiddenTests).flatMap((version) => version.tests.map(canonicalJson)));
  return tests.some((test) => hidden.has(canonicalJson(test)));
}
