import type { Skill } from '@etude/contracts/memory';
import { errorCode, errorDetails, EtudeError } from '@etude/contracts/errors';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import type { ProceduralMemory, SkillVersions } from '../../ports/memory.js';
import { skillDigest } from '../content-digest.js';
import { findSkill, type SkillReader } from '../life/find-skill.js';
import { contentOf, neededSkills, nothingToCall } from '../life/call-graph.js';
import { pythonCall, pythonText } from '../../python-files.js';
import type { Clock } from '../../ports/clock.js';
import type { ProofChecker } from '../../ports/verification.js';
import { isProven } from './proof.js';

type NeededSkill = Pick<Skill, 'name' | 'version' | 'scope' | 'kind' | 'digest' | 'code' | 'entryPoint' | 'dependencies'>;

const LOADER = pythonText('load_skills');

/**
 * The code with a loader in front, so that `from skills import NAME` and `import skills; skills.NAME(...)` work. Each skill runs in its own module.
 * Lines of the code keep their numbers, and `from __future__` imports remain the first statement.
 *
 * @param needed skills in the order of loading, as `neededSkills` returns them
 * @param direct pins of the skills that the code itself calls. If absent, the code calls the last skill of each name
 */
export function bundledCode(code: string, needed: readonly NeededSkill[], direct?: readonly SkillDependency[]): string {
  if (needed.length === 0) return code;
  const text = JSON.stringify(code);
  const file = '__import__("sys")._getframe().f_code.co_filename';
  // The statement is below the code's last line. Otherwise a traceback would show a line of the code in place of the statement.
  const below = '\n'.repeat(code.split('\n').length);
  return `${loadingCode(needed, direct, file, text)}${below}exec(compile(${text}, ${file}, "exec", dont_inherit=True), globals())\n`;
}

/**
 * The loader as one line, for an interpreter that runs the code later, such as a session's interpreter. The line defines the module `skills` and
 * binds no name. Each skill has its own module, and its own file name in tracebacks, such as "skills/parse_csv@2".
 */
function loadingCode(needed: readonly NeededSkill[], direct?: readonly SkillDependency[], ...shown: readonly string[]): string {
  const modules = new Map<string, string>();
  const moduleOf = (pin: SkillDependency) => {
    const module = modules.get(contentOf(pin));
    if (module === undefined) throw new EtudeError('INTERNAL', `${pin.name}@${pin.version} must be bundled before its caller`);
    return module;
  };
  const sees = (pins: readonly SkillDependency[]) => Object.fromEntries(pins.map((pin) => [pin.name, moduleOf(pin)]));
  const loaded = needed.map((skill) => {
    const entryPoint = entryPointOf(skill);
    const name = `skills/${skill.name}@${skill.version}`;
    const module = [...modules.values()].includes(name) ? `${name}-${modules.size}` : name;
    modules.set(contentOf(dependencyOn(skill)), module);
    return { module, code: skill.code, entryPoint, sees: sees(skill.dependencies ?? []) };
  });
  const seen = sees(direct ?? needed.map((skill) => dependencyOn(skill)));
  return pythonCall(LOADER, 'load', [JSON.stringify(loaded), JSON.stringify(seen), ...shown]);
}

/**
 * The skill, pinned to the active skills with the names that it calls. Every reader of the skill must be able to read the called skills.
 *
 * @throws EtudeError FAILED_PRECONDITION, which names a called skill that is missing, can't be called, or calls the given skill
 */
export async function pinnedTo(names: readonly string[], skill: Skill, procedural: SkillVersions): Promise<Skill> {
  const dependencies = await Promise.all(
    [...new Set(names)].toSorted().map(async (name) => {
      if (name === skill.name) throw refusal(`skills call each other in a circle: ${name} -> ${name}; remove this call`);
      const called = await findSkill(procedural, skill.scope, name);
      if (called === null) {
        const missing = `${skill.name} calls skills.${name}, but its readers see no active skill of that name`;
        throw refusal(`${missing}; register or promote that skill first, or remove the call`, MISSING);
      }
      if (called.name !== name)
        throw refusal(`${skill.name} calls skills.${name}, which ${called.name} replaces; call ${called.name} instead`);
      entryPointOf(called);
      return dependencyOn(called);
    }),
  );
  if (dependencies.length === 0) return skill;
  const pinned = { ...skill, dependencies };
  await neededSkills(procedural, pinned);
  return { ...pinned, digest: skillDigest(pinned) };
}

/** Names of skills in `from skills import NAME`, and in `skills.NAME` after `import skills`. "*" stands for all skills. */
export function importedNames(code: string): ReadonlySet<string> {
  const lists = [...code.matchAll(/^[ \t]*from[ \t]+skills[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)/gm)].map(([, list = '']) => list);
  const parts = lists.flatMap((list) => list.replaceAll(/#[^\n]*|[()]/g, '').split(','));
  const modules = [...code.matchAll(/^[ \t]*import[ \t]+(?:[\w. \t]+,)*[ \t]*skills\b(?:[ \t]+as[ \t]+(\w+))?/gm)];
  const attributes = modules.flatMap(([, alias = 'skills']) => [...code.matchAll(new RegExp(`\\b${alias}\\.([a-z][a-z0-9_]*)`, 'g'))]);
  const names = [...parts.map((part) => part.trim().split(/\s+/)[0] ?? ''), ...attributes.map(([, name = '']) => name)];
  return new Set(names.filter((name) => name !== ''));
}

/** Pins a candidate to the active skills that it imports. If a skill can't be pinned, the candidate stays unpinned and fails verification. */
export async function pinnedToImports(candidate: Skill, procedural: SkillVersions): Promise<Skill> {
  try {
    return await pinnedTo([...importedNames(candidate.code)], candidate, procedural);
  } catch (error) {
    if (errorCode(error) === 'FAILED_PRECONDITION') return candidate;
    throw error;
  }
}

const MISSING = 'dependencies';

/** Whether `pinnedTo` failed because a called skill isn't active. */
export function isWithoutDependency(error: unknown): boolean {
  return errorCode(error) === 'FAILED_PRECONDITION' && errorDetails(error).field === MISSING;
}

export function dependencyOn({ name, scope, version, digest }: Pick<Skill, 'name' | 'scope' | 'version' | 'digest'>): SkillDependency {
  return { name, tenant: scope.tenant, agent: scope.agent, user: scope.user, version, digest };
}

/** The function that other code calls. @throws EtudeError FAILED_PRECONDITION if the skill has none */
export function entryPointOf(skill: NeededSkill): string {
  const nothing = nothingToCall(skill);
  if (nothing !== null) throw refusal(`${skill.name}@${skill.version} ${nothing}`);
  return skill.entryPoint ?? '';
}

const refusal = (message: string, field?: string) => new EtudeError('FAILED_PRECONDITION', message, field === undefined ? {} : { field });

export interface LoadedFunction {
  readonly name: string;
  readonly version: number;
  readonly digest: string;
  /** The signature in Python, such as "def parse_csv(text: str) -> list[list[str]]". */
  readonly signature: string;
  /** The author's words. In a prompt they are only data. */
  readonly description: string;
}

interface LoadDeps {
  readonly procedural: Pick<ProceduralMemory, 'versions' | 'countOffers'>;
  readonly checker: ProofChecker;
  readonly clock: Clock;
}

/**
 * Loads functions for code that will be written later, together with the skills that they need, in the versions that were verified together. Each
 * function counts as offered and loaded. If one function is refused, none is counted. `pins` can load the same versions again. `code` makes each
 * function callable by its name, and importable from `skills`.
 *
 * @throws EtudeError NOT_FOUND, which names all missing functions; FAILED_PRECONDITION if a function can't be called or is not proven
 */
export async function loadFunctions(reader: SkillReader, names: readonly string[], deps: LoadDeps) {
  const wanted = [...new Set(names)];
  const found = await Promise.all(wanted.map((name) => findSkill(deps.procedural, reader, name)));
  const missing = wanted.filter((_, at) => found[at] === null);
  if (missing.length > 0) {
    const message = `There is no active skill named ${missing.join(', ')}; search for the existing skills.`;
    throw new EtudeError('NOT_FOUND', message, { field: 'names' });
  }
  const skills = found.filter((skill) => skill !== null);
  const pins = skills.map((skill) => dependencyOn(skill));
  const imports = skills.length === 0 ? '' : `from skills import ${skills.map(({ name }) => name).join(', ')}\n`;
  const { tenant, agent, user } = reader;
  const caller = { name: 'the code', scope: { tenant, agent, user }, dependencies: pins };
  const needed = await neededSkills(deps.procedural, caller, (skill) => isProven(skill, deps.checker));
  const loadedAt = deps.clock.now();
  await deps.procedural.countOffers(skills.map(({ scope, name, version }) => ({ ...scope, name, version, loadedAt })));
  const functions = skills.map(({ name, version, digest, contract, description }): LoadedFunction => {
    return { name, version, digest, signature: contract?.signature ?? '', description };
  });
  return { functions, pins, code: needed.length === 0 ? '' : `${loadingCode(needed, pins)}\n${imports}` };
}
