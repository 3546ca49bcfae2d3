import { EtudeError } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import { contentDigest, isInWords } from '../content-digest.js';
import { withCarriedMarks, withMarkOfCode } from './carried-over.js';
import { withMarks } from '../../trust/sources.js';
import { keyOf, LIVING, movedSkill, newCandidate, newSkill, replacedReason, wasOnlyTold } from './skill-life.js';
import type { MemoryOutbox, SkillVersions } from '../../ports/memory.js';
import { findSkill, type SkillReader } from './find-skill.js';
import { useOf } from './usage.js';

/** The success rate of a procedure that nobody has tried. A function that passed its tests starts at 1. */
const RATE_AT_FIRST = 0.5;
const ID_CHARS = 16;

export interface Telling {
  readonly scope: Scope;
  readonly name: string;
  readonly words: string;
  /** The procedure that consolidation learned from actions. Absent if somebody told the procedure. */
  readonly learned?: Skill | undefined;
  readonly by: string;
  /** Time in ms since 1970. */
  readonly at: number;
}

/**
 * The version for a told procedure. A new name becomes active at once. The next version of a procedure that was only told becomes active too, and
 * keeps the counts. After a person's decision, or for words of a marked skill, it is a candidate. Equal words return the existing version.
 *
 * @param versions all versions of this name that the owner has, newest first
 * @param isMarked whether the tenant has a marked skill with these words
 * @throws EtudeError FAILED_PRECONDITION for the name of a skill with code, and for words that were taken out of use
 */
export function toldProcedure(
  telling: Telling,
  versions: readonly Skill[],
  isMarked: boolean,
): { readonly version: Skill; readonly isNew: boolean } {
  const [newest] = versions;
  if (newest !== undefined && newest.kind !== 'procedure')
    throw new EtudeError('FAILED_PRECONDITION', `${telling.name} is a skill with code; store the procedure under another name`);
  const made = wordedProcedure(telling, (newest?.version ?? 0) + 1);
  const inUse = versions.find(({ status }) => status === 'active');
  const same = versions.filter(({ digest }) => digest === made.digest);
  if (inUse !== undefined && same.includes(inUse)) return { version: inUse, isNew: false };
  const isOpen = newest === undefined || (inUse !== undefined && wasOnlyTold(inUse));
  if (isOpen && !isMarked) return { version: inUseInPlaceOf(made, inUse, telling), isNew: true };
  const living = same.find(({ status }) => LIVING.has(status));
  if (living !== undefined) return { version: living, isNew: false };
  const [gone] = same;
  if (gone !== undefined) {
    const message = `version ${gone.version} of procedure "${gone.name}" has these words already, and is ${gone.status}. Nothing was stored: ask a reviewer to bring it back (RestoreSkill, RollbackSkill or VerifySkill), or store other words.`;
    const metadata = { version: String(gone.version), status: gone.status };
    throw new EtudeError('FAILED_PRECONDITION', message, { field: 'prompt', metadata });
  }
  const candidate = newSkill(withMarkOfCode(withCarriedMarks(made, versions, {}), isMarked), made.version, telling);
  return { version: candidate, isNew: true };
}

/** The told versions before the active one, moved to `deprecated`. A crashed writer may leave several active versions. @param versions of one name */
export function replacedByTelling({ by, at }: Pick<Telling, 'by' | 'at'>, versions: readonly Skill[]): readonly Skill[] {
  const inUse = versions.find(({ status }) => status === 'active');
  if (inUse === undefined) return [];
  const reason = replacedReason(inUse.version);
  return versions
    .filter((skill) => skill.version < inUse.version && wasOnlyTold(skill))
    .map((skill) => movedSkill(skill, { key: keyOf(skill), to: 'deprecated', by, reason, at }));
}

/** The new version, active in place of `before`. It keeps the counts, because callers know a procedure by its name. */
function inUseInPlaceOf(made: Skill, before: Skill | undefined, { by, at }: Telling): Skill {
  const { executionCount, successRate, cues, fingerprints, usage } = before ?? made;
  return {
    ...made,
    history: [{ at, by, from: null, to: 'active', reason: made.statusReason }],
    executionCount,
    successRate,
    cues,
    fingerprints,
    ...(usage === undefined ? {} : { usage }),
  };
}

export function procedureSource(scope: Skill['scope'], name: string, version: number): string {
  return `procedures/${contentDigest([scope, name, version]).slice(0, ID_CHARS)}`;
}

/** A told procedure has itself as an untrusted source. A learned procedure has episodes as sources, and their success rate. */
function wordedProcedure({ scope, name, words, learned, at }: Telling, version: number): Skill {
  if (learned !== undefined) return withMarks({ ...learned, version, status: 'active', statusReason: 'learned from actions' });
  const made = newProcedure(words, { name, scope, sources: [procedureSource(scope, name, version)], scripted: false, at });
  return withMarks({ ...made, version, status: 'active', statusReason: 'told in words', successRate: RATE_AT_FIRST });
}

/** A candidate that is read, not run. @param given `at` is in ms since 1970 */
export function newProcedure(description: string, given: Pick<Skill, 'name' | 'scope' | 'sources' | 'scripted'> & { at: number }): Skill {
  return newCandidate({ kind: 'procedure', description, code: '', entryPoint: null, tests: [], model: null, ...given });
}

interface WordsUse {
  /** Names of the used procedures and skills, such as "moor_boat" or "moor_boat@2". */
  readonly names: readonly string[];
  readonly success: boolean;
  /** Accepted code, which may contain a copy of a shown skill. Absent if there is none. */
  readonly code?: string;
  /** Identifies the use, such as the id of an episode. For one id, each procedure is counted only once. */
  readonly useId: string;
  /** Time of the use, in ms since 1970. */
  readonly at: number;
}

/** Counts a use of each named procedure that the reader sees, and of each named skill that `code` has copied. Runs are counted elsewhere. */
export async function countWordsUsed(
  { procedural, outbox }: { readonly procedural: SkillVersions; readonly outbox: MemoryOutbox },
  reader: SkillReader,
  { names, success, code = '', useId, at }: WordsUse,
): Promise<void> {
  const { tenant, agent, user } = reader;
  const scope = { tenant, agent, user };
  for (const name of new Set(names.map((one) => one.replace(/^skills\//, '')))) {
    const [, bare = '', version] = /^([a-z][a-z0-9_]{0,79})(?:@(\d{1,9}))?$/.exec(name) ?? [];
    const found = bare === '' ? null : await findSkill(procedural, reader, bare, version === undefined ? {} : { version: Number(version) });
    if (found === null || !(isInWords(found) || isPartOf(found, code))) continue;
    await outbox.put(tenant, `words-${contentDigest({ ...scope, useId, bare })}`, useOf(found, scope, { success, at }));
  }
}

const dense = (text: string) => text.replaceAll(/\s+/g, '');

function isPartOf({ kind, entryPoint, code: own }: Skill, code: string): boolean {
  if (kind === 'snippet') return entryPoint !== null && new RegExp(`^class[ \\t]+${entryPoint}\\b`, 'm').test(code);
  return kind === 'function' && own.trim() !== '' && dense(code).includes(dense(own));
}
