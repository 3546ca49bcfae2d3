import type { Skill } from '@etude/contracts/memory';
import { EtudeError } from '@etude/contracts/errors';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import type { ProceduralMemory } from '../../ports/memory.js';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { findSkill } from '../life/find-skill.js';
import type { SkillReader } from '../life/owners.js';
import { pinnedVersion } from '../life/pins.js';
import { skillDigest } from '../life/skill-digest.js';
import { behindSkills, moduleName, skillsModule, type LoadedSkill } from './skills-module.js';

/** More are not brought in for one skill. */
const NEEDED_MAX = 200;

type Named = Pick<SkillDependency, 'tenant' | 'agent' | 'user' | 'name'>;
type Calling = Pick<Skill, 'name' | 'scope' | 'dependencies'>;
/** What of a skill is brought in. */
export type NeededSkill = Pick<Skill, 'name' | 'version' | 'scope' | 'kind' | 'digest' | 'code' | 'entryPoint' | 'dependencies'>;

/**
 * Code in which `from skills import NAME` and `import skills; skills.NAME(...)` work, wherever a sandbox runs code as a module: programs,
 * calls, checked runs, cells. Each skill runs in a module of its own; the code's lines keep their numbers. Without skills it is the
 * code as it was.
 *
 * @param needed in the order of loading; see `neededSkills`
 * @param direct what the code itself calls; absent: the last of each name
 */
export function bundledCode(code: string, needed: readonly NeededSkill[], direct?: readonly SkillDependency[]): string {
  if (needed.length === 0) return code;
  const { loaded, sees } = modulesOf(needed, direct);
  return behindSkills(code, loaded, sees);
}

/** What `bundledCode` puts before the code, for an interpreter that runs the code later, such as a session's. */
export function loadingCode(needed: readonly NeededSkill[], direct?: readonly SkillDependency[]): string {
  const { loaded, sees } = modulesOf(needed, direct);
  return skillsModule(loaded, sees);
}

/**
 * Skills of these names as they are now, to be kept with the skill that calls them: each must be there for everybody who reads it.
 *
 * @param reader who registers it
 * @throws EtudeError FAILED_PRECONDITION naming the one that is missing, can't be called, or calls `self`
 */
export async function pinDependencies(
  procedural: Pick<ProceduralMemory, 'versions'>,
  reader: SkillReader,
  names: readonly string[],
  self: Pick<Skill, 'name' | 'scope'>,
): Promise<SkillDependency[]> {
  const found = await Promise.all(
    [...new Set(names)].toSorted().map(async (name) => {
      if (name === self.name) throw refusal(`skills call each other in a circle: ${name} -> ${name}; take this call out`);
      const skill = await findSkill(procedural, self.scope, name);
      if (skill === null) throw await missing(procedural, reader, name, self.name);
      if (skill.name !== name) throw refusal(`${self.name} calls skills.${name}, in whose place ${skill.name} is used; call that one`);
      return skill;
    }),
  );
  for (const skill of found) entryPointOf(skill);
  const dependencies = found.map((skill) => dependencyOn(skill));
  await neededSkills(procedural, { ...self, dependencies });
  return dependencies;
}

async function missing(
  procedural: Pick<ProceduralMemory, 'versions'>,
  reader: SkillReader,
  name: string,
  caller: string,
): Promise<EtudeError> {
  if ((await findSkill(procedural, reader, name)) !== null)
    return refusal(`${caller} calls skills.${name}, which not everybody who reads ${caller} can read; promote ${name} first`);
  return refusal(`${caller} calls skills.${name}, and there is no active skill of that name; register it first, or take the call out`);
}

/**
 * All skills that this one needs, at any depth, in the versions that they were verified with; each behind those that it needs.
 *
 * @param isProven whether a skill's proof holds; absent: proofs are not looked at
 * @throws EtudeError FAILED_PRECONDITION where they go round in a circle, where one is gone or withdrawn, has other content than
 *   when both were verified together, or is no longer proven
 */
export async function neededSkills(
  registry: Pick<SkillRegistry, 'versions'>,
  skill: Calling,
  isProven: (skill: Skill) => boolean = () => true,
): Promise<readonly Skill[]> {
  const found = new Map<string, Skill>();
  const visit = async (caller: Calling, path: readonly Named[]): Promise<void> => {
    for (const dependency of caller.dependencies ?? []) {
      refuseCircle(dependency, path);
      if (found.has(pinOf(dependency))) continue;
      if (found.size + path.length > NEEDED_MAX) throw refusal(`${skill.name} needs more than ${NEEDED_MAX} skills; make it need fewer`);
      const needed = await pinnedSkill(registry, dependency, caller, isProven);
      // Whose it is, also where its pin does not say so.
      refuseCircle({ ...needed.scope, name: needed.name }, path);
      await visit(needed, [...path, { ...needed.scope, name: needed.name }]);
      found.set(pinOf(dependency), needed);
    }
  };
  await visit(skill, [{ ...skill.scope, name: skill.name }]);
  return [...found.values()];
}

async function pinnedSkill(
  registry: Pick<SkillRegistry, 'versions'>,
  dependency: SkillDependency,
  caller: Calling,
  isProven: (skill: Skill) => boolean,
): Promise<Skill> {
  const { tenant, agent, name, version, digest } = dependency;
  if (tenant !== caller.scope.tenant && tenant !== GLOBAL_TENANT)
    throw refusal(`${caller.name} needs ${name} of another tenant; register ${caller.name} again, which pins what it may read`);
  const skill = pinnedVersion(await registry.versions({ tenant, agent }, name), dependency, caller);
  const what = `${caller.name} needs ${name}@${version}`;
  if (skill !== undefined && skill.scope.user !== null && skill.scope.user !== caller.scope.user)
    throw refusal(`${what}, which is one user's alone; register ${caller.name} again, which pins what all who read it may read`);
  if (skill === undefined) throw refusal(`${what}, which is gone; register a new version of ${caller.name} that does without it`);
  if (skill.status !== 'active' && skill.status !== 'deprecated')
    throw refusal(
      `${what}, which is ${skill.status}${skill.statusReason === '' ? '' : ` (${skill.statusReason})`}; restore it, or register a new version of ${caller.name}`,
    );
  if (skill.digest !== digest || skillDigest(skill) !== digest)
    throw refusal(
      `${what} with digest ${digest}, and its content has another one; restore it, or register ${caller.name} again, which pins what there is now`,
    );
  if (!isProven(skill)) throw refusal(`${what}, whose code does not match its evidence; verify ${name} again`);
  if (skill.kind !== 'function') throw refusal(`${what}, a ${skill.kind}, which is shown and never run; take the call out`);
  if (skill.entryPoint === null)
    throw refusal(`${what}, a program without a function to call; register a version of it that has an entry point`);
  return skill;
}

function refuseCircle(dependency: Named, path: readonly Named[]): void {
  const from = path.findIndex((one) => ownNameOf(one) === ownNameOf(dependency));
  if (from < 0) return;
  const circle = [...path.slice(from), dependency].map(({ name }) => name).join(' -> ');
  throw refusal(`skills call each other in a circle: ${circle}; take one of these calls out`);
}

function modulesOf(needed: readonly NeededSkill[], direct?: readonly SkillDependency[]) {
  const modules = new Map<string, string>();
  const taken = new Set<string>();
  const loaded: LoadedSkill[] = [];
  const sees = (dependencies: readonly SkillDependency[]) =>
    Object.fromEntries(dependencies.map((one) => [one.name, moduleOf(modules, one)]));
  for (const skill of needed) {
    const module = moduleName(skill, taken);
    taken.add(module);
    modules.set(contentOf({ ...skill.scope, ...skill }), module);
    loaded.push({ module, code: skill.code, entryPoint: entryPointOf(skill), sees: sees(skill.dependencies ?? []) });
  }
  return { loaded, sees: sees(direct ?? needed.map((skill) => dependencyOn(skill))) };
}

/** A skill as another one pins it. */
export function dependencyOn({ name, scope, version, digest }: Pick<Skill, 'name' | 'scope' | 'version' | 'digest'>): SkillDependency {
  return { name, tenant: scope.tenant, agent: scope.agent, user: scope.user, version, digest };
}

function moduleOf(modules: ReadonlyMap<string, string>, dependency: SkillDependency): string {
  const module = modules.get(contentOf(dependency));
  if (module === undefined)
    throw new EtudeError('INTERNAL', `${dependency.name}@${dependency.version} is called and not brought in before its caller`);
  return module;
}

function entryPointOf({ kind, name, version, entryPoint }: NeededSkill): string {
  if (kind === 'procedure') throw refusal(`${name}@${version} is a procedure in words and can't be called by other code`);
  if (kind === 'snippet')
    throw refusal(`${name}@${version} is a snippet, whose code was never run, and can't be brought in; copy what is needed`);
  if (entryPoint === null) throw refusal(`${name}@${version} is a program and can't be called by other code`);
  return entryPoint;
}

const refusal = (message: string) => new EtudeError('FAILED_PRECONDITION', message);

const ownNameOf = ({ tenant, agent, user = null, name }: Named) => JSON.stringify([tenant, agent, user, name]);

type Pinned = Named & Pick<SkillDependency, 'version' | 'digest'>;

const pinOf = (pin: Pinned) => JSON.stringify([pin.user ?? null, contentOf(pin)]);

/** What is brought in for a pin; of two owners' versions with one number and one content, either. */
const contentOf = ({ tenant, agent, name, version, digest }: Pinned) => JSON.stringify([tenant, agent, name, version, digest]);
