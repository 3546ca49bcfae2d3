import { EtudeError } from '@etude/contracts/errors';
import { SkillName } from '@etude/contracts/ids';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { ProceduralMemorySettings, SkillStatus } from '@etude/contracts/skill-proof';
import type { Clock } from '../../ports/clock.js';
import type { ProceduralMemory, StoreSkillOptions } from '../../ports/memory.js';
import { canonicalJson } from '../content-digest.js';
import { otherKindReason } from './other-kind.js';
import { changedFields } from './stale-edit.js';

export interface RegistrationDeps {
  readonly procedural: ProceduralMemory;
  /** Of the agent that it is registered for. */
  readonly settings: Pick<ProceduralMemorySettings, 'enabled' | 'maxSkills'>;
  readonly clock: Clock;
}

/** Words that Python has other uses for: nobody could import a skill of such a name. */
const KEYWORDS = new Set(
  'and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);
/** Modules that code imports, which a skill of the same name would be taken for. */
const MODULES = new Set(
  'abc ast asyncio base64 builtins collections contextlib copy csv ctypes dataclasses datetime decimal enum fractions functools glob hashlib heapq html http importlib inspect io itertools json logging math multiprocessing operator os pathlib pickle random re secrets shutil signal site skills socket sqlite3 ssl statistics string struct subprocess sys tempfile textwrap threading time traceback types typing unittest urllib uuid warnings weakref xml zipfile zlib'.split(
    ' ',
  ),
);
/** Of versions that take up no room. */
const GONE: ReadonlySet<SkillStatus> = new Set(['rejected', 'archived']);

/**
 * Stores a skill as its author made it, for verification: version 1 of a new one, or the next. The same content again is the version
 * that is there. Held-out tests of the version before go on with it.
 *
 * @param options.baseVersion the version that was edited; left out: whatever is newest
 * @throws EtudeError INVALID_ARGUMENT for a name that can't be imported; ABORTED where another version is the newest, with what changed
 *   since; FAILED_PRECONDITION where skills are switched off, there are too many, the version in use is of
 *   another kind, or a version with this content is not used any more
 */
export async function registerSkill(candidate: Skill, options: StoreSkillOptions, deps: RegistrationDeps): Promise<Skill> {
  const { procedural, settings, clock } = deps;
  const { scope, name } = candidate;
  requireName(name);
  if (!settings.enabled)
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `agent "${scope.agent}" learns no skills: its setting procedural_memory_settings.enabled is false`,
      { field: 'enabled' },
    );
  const owner = { tenant: scope.tenant, agent: scope.agent };
  const versions = await procedural.versions(owner, name);
  if (versions.every(({ status }) => GONE.has(status))) await requireRoom(deps, owner);
  const own = versions.filter((version) => version.scope.user === scope.user);
  requireKind(candidate, own.find(({ status }) => status === 'active') ?? null);
  const before = own[0];
  const heldOut = distinct([...(before?.heldOut ?? []), ...(candidate.heldOut ?? [])]);
  const at = clock.now();
  const given = { ...candidate, createdAt: at, updatedAt: at, ...(heldOut.length === 0 ? {} : { heldOut }) };
  const stored = await procedural.store(given, options);
  requireNotGivenUp(stored, versions);
  // What a model words anew each time is nobody's wish.
  if (candidate.origin !== 'request') requireTaken(candidate, stored);
  return stored;
}

/**
 * What is neither code nor anything else of the content makes no version, and is never lost without a word.
 *
 * @throws EtudeError FAILED_PRECONDITION naming what was not taken
 */
function requireTaken(given: Skill, stored: Skill): void {
  const { metadata = given.metadata, dependencies = given.dependencies, heldOut = [] } = stored;
  const tests = distinct([...heldOut, ...(given.heldOut ?? [])]);
  const asked = { ...given, heldOut: tests, ...(metadata && { metadata }), ...(dependencies && { dependencies }) };
  const lost = changedFields({ ...stored, heldOut }, asked);
  if (lost.length === 0) return;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `version ${stored.version} of skill "${stored.name}" has this code, with these tests, already; other ${lost.join(', ')} alone make no new version, and were not taken. Change the content with them, a test for example.`,
    { field: 'skill', metadata: { version: String(stored.version), not_taken: lost.join(', ') } },
  );
}

/** Nobody means to register what somebody took out of use: to bring it back is another call. @throws EtudeError FAILED_PRECONDITION */
function requireNotGivenUp({ name, version, status, scope, proof }: Skill, versions: readonly Skill[]): void {
  if (status !== 'deprecated' && status !== 'archived') return;
  const active = versions.find((other) => other.status === 'active' && other.scope.user === scope.user);
  const back =
    status === 'archived'
      ? `restores ${name}@${version} (RestoreSkill)`
      : proof === undefined
        ? `has ${name}@${version} verified again (VerifySkill)`
        : `rolls back to version ${version} (RollbackSkill)`;
  const inUse = active === undefined ? 'and no version is active' : `and version ${active.version} is active`;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `version ${version} of skill "${name}" has this content already; it is ${status}, ${inUse}. Nothing was stored: a reviewer ${back}, or change the content.`,
    { field: 'skill', metadata: { version: String(version), status } },
  );
}

/** @throws EtudeError INVALID_ARGUMENT for a name that nobody could import */
export function requireName(name: string): void {
  const parsed = SkillName.safeParse(name);
  const wrong = parsed.success
    ? KEYWORDS.has(name)
      ? 'is a word of Python itself'
      : MODULES.has(name)
        ? 'is that of a module that code imports'
        : null
    : (parsed.error.issues[0]?.message ?? 'is wrong');
  if (wrong !== null) throw new EtudeError('INVALID_ARGUMENT', `the name ${JSON.stringify(name)} ${wrong}`, { field: 'name' });
}

/** @throws EtudeError FAILED_PRECONDITION */
function requireKind(candidate: Skill, inUse: Skill | null): void {
  const reason = otherKindReason(candidate, inUse);
  if (reason !== null) throw new EtudeError('FAILED_PRECONDITION', `skill "${candidate.name}": ${reason}`, { field: 'kind' });
}

async function requireRoom({ procedural, settings }: RegistrationDeps, owner: { tenant: string; agent: string }): Promise<void> {
  const { maxSkills } = settings;
  if (maxSkills === 0 || (await procedural.countNames(owner, maxSkills)) < maxSkills) return;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `"${owner.agent}" has as many skills as it may have (max_skills is ${maxSkills}); archive some, or raise the setting`,
    { field: 'max_skills' },
  );
}

function distinct(tests: readonly SkillTest[]): SkillTest[] {
  return [...new Map(tests.map((test) => [canonicalJson(test), test])).values()];
}
