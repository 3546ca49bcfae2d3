import { EtudeError } from '@etude/contracts/errors';
import type { Scope, Skill } from '@etude/contracts/memory';
import { contentDigest, skillDigest } from '../content-digest.js';
import { withCarriedMarks, withMarkOfCode } from './marks.js';
import { withMarks } from '../../trust/sources.js';
import { keyOf, LIVING, movedSkill, newSkill, wasOnlyTold } from './skill-life.js';

/** Nothing is known of it yet; code that passed its tests starts at 1. */
const RATE_AT_FIRST = 0.5;
const ID_CHARS = 16;

/** A procedure in words, as somebody tells it. */
export interface Telling {
  readonly scope: Scope;
  readonly name: string;
  readonly words: string;
  /** For the history. */
  readonly by: string;
  /** ms since 1970 */
  readonly at: number;
}

/** What a telling comes to. */
export interface ToldProcedure {
  /** The version that has these words. */
  readonly version: Skill;
  readonly isNew: boolean;
}

/**
 * A procedure in words is in use at once: as version 1, and where the version in use was only told as well, as the next one in its place,
 * with its counts. Where anybody decided on what has that name, or the words are those of a marked skill, it is a candidate like any
 * other. The same words again are the version that is there.
 *
 * @param versions all of this name that the owner has, newest first
 * @param isMarked whether the tenant has a marked skill with these words
 * @throws EtudeError FAILED_PRECONDITION for the name of a skill with code, and for words that somebody took out of use
 */
export function toldProcedure(telling: Telling, versions: readonly Skill[], isMarked: boolean): ToldProcedure {
  const [newest] = versions;
  requireWords(telling, newest);
  const made = wordedProcedure(telling, (newest?.version ?? 0) + 1);
  const inUse = versions.find(({ status }) => status === 'active');
  const same = versions.filter(({ digest }) => digest === made.digest);
  if (inUse !== undefined && same.includes(inUse)) return { version: inUse, isNew: false };
  const isOpen = newest === undefined || (inUse !== undefined && wasOnlyTold(inUse));
  if (isOpen && !isMarked) return { version: inUseInPlaceOf(made, inUse ?? null, telling), isNew: true };
  const living = same.find(({ status }) => LIVING.has(status));
  if (living !== undefined) return { version: living, isNew: false };
  requireNotGone(same[0]);
  const candidate = newSkill(withMarkOfCode(withCarriedMarks(made, versions, {}), isMarked), made.version, telling);
  return { version: candidate, isNew: true };
}

/**
 * What goes out of use behind a telling, as it is then: every version before the one in use that was only told, also what another
 * telling left whose writer was lost.
 *
 * @param versions all of this name that the owner has, newest first, with what the telling came to
 */
export function replacedByTelling({ by, at }: Pick<Telling, 'by' | 'at'>, versions: readonly Skill[]): readonly Skill[] {
  const inUse = versions.find(({ status }) => status === 'active');
  if (inUse === undefined) return [];
  const reason = `told in other words: version ${inUse.version}`;
  return versions
    .filter((skill) => skill.version < inUse.version && wasOnlyTold(skill))
    .map((skill) => movedSkill(skill, { key: keyOf(skill), to: 'deprecated', by, reason, at }));
}

function inUseInPlaceOf(made: Skill, before: Skill | null, { by, at }: Telling): Skill {
  return {
    ...made,
    history: [{ at, by, from: null, to: 'active', reason: made.statusReason }],
    ...(before === null ? {} : countsOf(before)),
  };
}

/** How it went under other words: what callers know of a procedure goes by its name. */
function countsOf({ executionCount, successRate, cues, fingerprints, usage }: Skill): Partial<Skill> {
  return { executionCount, successRate, cues, fingerprints, ...(usage === undefined ? {} : { usage }) };
}

/** It names itself among its sources: its words are somebody's, and so is what is learned in their sight. */
function wordedProcedure({ scope, name, words, at }: Telling, version: number): Skill {
  const skill: Omit<Skill, 'digest'> = {
    name,
    version,
    scope,
    kind: 'procedure',
    description: words,
    code: '',
    entryPoint: null,
    parameters: [],
    tests: [],
    tags: [],
    cues: [],
    fingerprints: [],
    status: 'active',
    statusReason: 'told in words',
    evidence: [],
    sources: [`procedures/${contentDigest([scope, name, version]).slice(0, ID_CHARS)}`],
    model: null,
    scripted: false,
    executionCount: 0,
    successRate: RATE_AT_FIRST,
    createdAt: at,
    updatedAt: at,
  };
  return withMarks({ ...skill, digest: skillDigest(skill) });
}

function requireWords({ name }: Telling, newest: Skill | undefined): void {
  if (newest === undefined || newest.kind === 'procedure') return;
  throw new EtudeError('FAILED_PRECONDITION', `${name} is a skill with code; store the procedure under another name`);
}

function requireNotGone(same: Skill | undefined): void {
  if (same === undefined) return;
  const { name, version, status } = same;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `version ${version} of procedure "${name}" has these words already, and is ${status}. Nothing was stored: a reviewer brings it back (RestoreSkill, RollbackSkill or VerifySkill), or store other words.`,
    { field: 'prompt', metadata: { version: String(version), status } },
  );
}
