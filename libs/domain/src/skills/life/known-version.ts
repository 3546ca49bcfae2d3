import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillWords } from '../../ports/memory.js';
import { reasonsNotTrusted } from '../hygiene/untrusted.js';
import { joinedTests } from './carried-tests.js';
import { skillDigest } from './skill-digest.js';
import { LIVING } from './skill-status.js';
import { changedFields } from './stale-edit.js';

/** Nobody uses it before its marks were looked at. */
const UNDECIDED: ReadonlySet<SkillStatus> = new Set(['candidate', 'verified', 'pending_review']);

/** A version that is there, which storing a skill comes to; `changed` is what becomes of it, null where nothing does. */
export interface KnownVersion {
  readonly version: Skill;
  readonly changed: Skill | null;
}

/**
 * The version that has what is stored already; null where it makes a new one. Sources are added to what is there, with the marks that they
 * give; but what is in use without a mark, and is told to come from where nobody is trusted, gets a version beside it that is marked.
 *
 * @param own the owner's versions, newest first
 * @param words see `StoreSkillOptions`
 */
export function knownVersion(given: Skill, own: readonly Skill[], words: SkillWords = 'ignored'): KnownVersion | null {
  const digest = skillDigest(given);
  const same = own.filter((version) => version.digest === digest);
  const worded = words === 'ignored' ? same : same.filter((version) => differingWords(version, given).length === 0);
  if (worded.length === 0 && (words === 'kept' || same.some(({ status }) => LIVING.has(status)))) return null;
  const meant = worded.length === 0 ? same : worded;
  const marks = marksOf(given);
  const fitting = meant.filter((version) => marks.length === 0 || takesMarks(version));
  const version = fitting.find(({ status }) => status === 'active') ?? fitting.find(({ status }) => LIVING.has(status)) ?? fitting[0];
  return version === undefined ? null : { version, changed: LIVING.has(version.status) ? withSources(version, given) : null };
}

/** What an author says of a skill beside its content. */
const WORDS = ['description', 'tags', 'category', 'displayName', 'examplePrompts', 'metadata', 'heldOut'] as const;

/** Which of that differs, by what it is called. Held-out tests go on from version to version, and metadata that is left out is not asked for. */
export function differingWords(stored: Skill, given: Skill): readonly string[] {
  const { heldOut = [] } = stored;
  const metadata = given.metadata ?? stored.metadata;
  const asked = { ...given, heldOut: joinedTests(heldOut, given.heldOut), ...(metadata && { metadata }) };
  return changedFields({ ...stored, heldOut }, asked, WORDS);
}

function takesMarks(version: Skill): boolean {
  return UNDECIDED.has(version.status) || !LIVING.has(version.status) || (version.untrusted ?? []).length > 0;
}

function marksOf({ untrusted = [], sources }: Skill): readonly string[] {
  return [...new Set([...untrusted, ...reasonsNotTrusted(sources)])];
}

/** null: it names all of them already. */
function withSources(version: Skill, given: Skill): Skill | null {
  const sources = [...new Set([...version.sources, ...given.sources])];
  const untrusted = [...new Set([...marksOf(version), ...marksOf(given)])];
  if (sources.length === version.sources.length && untrusted.length === (version.untrusted ?? []).length) return null;
  const updatedAt = Math.max(version.updatedAt, given.updatedAt);
  return { ...version, sources, updatedAt, ...(untrusted.length === 0 ? {} : { untrusted }) };
}
