import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillWords } from '../../ports/memory.js';
import { reasonsNotTrusted } from '../../trust/sources.js';
import { canonicalJson, hasHiddenTests, skillDigest } from '../content-digest.js';
import { LIVING } from './skill-life.js';
import { EtudeError } from '@etude/contracts/errors';

/** Not in use before its marks were looked at. */
const UNDECIDED: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'pending_review']);

/** The existing version that a skill to be stored is equal to. `changed` is that version with what is added to it; null: nothing is. */
export interface KnownVersion {
  readonly version: Skill;
  readonly changed: Skill | null;
}

/**
 * The existing version with the content that is stored; null where a new version is needed. New sources and their marks are added to it.
 * An active version without a mark stays as it is: the same content from an untrusted source becomes a marked version beside it.
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

/** Held-out tests carry over from version to version; metadata that is left out stays. */
function hasSameWords(stored: Skill, given: Skill): boolean {
  const asked: Skill = { ...given, metadata: given.metadata ?? stored.metadata };
  const isNew = joinedTests(stored.heldOut, given.heldOut).length > (stored.heldOut ?? []).length;
  return !isNew && WORDS.every((field) => canonicalJson(stored[field] ?? []) === canonicalJson(asked[field] ?? []));
}

function takesMarks(version: Skill): boolean {
  return UNDECIDED.has(version.status) || !LIVING.has(version.status) || (version.untrusted ?? []).length > 0;
}

function marksOf({ untrusted = [], sources }: Skill): readonly string[] {
  return [...new Set([...untrusted, ...reasonsNotTrusted(sources)])];
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
 * That somebody edited another version than the newest, and whose the newest is; null where nobody did.
 *
 * @param versions all of the owner's and the same user's, newest first: nobody is told of another user's
 */
export function staleEdit(name: string, baseVersion: number, versions: readonly Skill[]): EtudeError | null {
  const [newest] = versions;
  if ((newest?.version ?? 0) === baseVersion) return null;
  const why =
    newest === undefined || versions.every(({ version }) => version !== baseVersion)
      ? `skill "${name}" has no version ${baseVersion} to edit; the newest is ${newest?.version ?? 'none'}`
      : `skill "${name}" changed since version ${baseVersion}: the newest is version ${newest.version} by ${newest.history?.[0]?.by ?? 'nobody that is known'}; compare the two (DiffSkill) and make the edit on it`;
  return new EtudeError('ABORTED', why, { field: 'base_version' });
}

/**
 * A version as it goes on from those before it: held-out tests go from version to version, and so does that some tests are hidden, whoever
 * wrote it, since an edit carries over those of the version before.
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

/** Each once. */
export function joinedTests(known: readonly SkillTest[] = [], more: readonly SkillTest[] = []): SkillTest[] {
  return [...new Map([...known, ...more].map((test) => [canonicalJson(test), test])).values()];
}

function hasTestHiddenIn(versions: readonly Skill[], { tests }: Skill): boolean {
  const hidden = new Set(versions.filter(hasHiddenTests).flatMap((version) => version.tests.map(canonicalJson)));
  return tests.some((test) => hidden.has(canonicalJson(test)));
}
