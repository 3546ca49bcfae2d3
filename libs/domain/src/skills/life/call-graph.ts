import type { Skill } from '@etude/contracts/memory';
import type { SkillMove, SkillOwner, SkillRegistry } from '../../ports/skill-registry.js';
import { GLOBAL_TENANT } from '@etude/contracts/ids';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { CALLABLE, GONE, IN_USE } from './skill-life.js';
import { skillDigest } from '../content-digest.js';
import { findSkill } from './find-skill.js';
import type { SkillDependency } from '@etude/contracts/skill-proof';

/** Tells versions of one tenant apart. */
export const versionKey = ({ name, version, scope }: Pick<Skill, 'name' | 'version' | 'scope'>) =>
  `${scope.tenant} ${scope.agent} ${scope.user ?? ''} ${name}@${version}`;

/** Of a skill, the versions that its code calls: where a pin does not say whose, nobody's and its own user's. */
export function calledVersions({ scope, dependencies = [] }: Pick<Skill, 'scope' | 'dependencies'>): string[] {
  return dependencies.flatMap(({ name, version, tenant, agent, user }) => {
    const users = user === undefined ? [null, scope.user] : [user];
    return [...new Set(users)].map((one) => versionKey({ name, version, scope: { tenant, agent, user: one } }));
  });
}

/** Callers before what they call, so that nothing is ever called that is not there. */
export function callersFirst(skills: readonly Skill[]): Skill[] {
  const left = new Map(skills.map((skill) => [versionKey(skill), skill]));
  const ordered: Skill[] = [];
  while (left.size > 0) {
    const called = new Set([...left.values()].flatMap(calledVersions));
    const free = [...left].filter(([key]) => !called.has(key));
    // Only a cycle leaves none, and there is none among verified skills.
    for (const [key, skill] of free.length > 0 ? free : [...left]) {
      ordered.push(skill);
      left.delete(key);
    }
  }
  return ordered;
}

export type CallGraph = Pick<SkillRegistry, 'versions' | 'dependents'>;

export interface MovedVersion {
  readonly before: Skill;
  readonly after: Skill;
  readonly move: Pick<SkillMove, 'proof' | 'replacedBy'>;
}

/**
 * Whatever is in use, or waits for review, can call what it was verified with: it comes there only where all of that is there, and none of
 * that leaves meanwhile. What is withdrawn with its proof goes whoever calls it.
 *
 * @param graph as it was before
 * @param moved made at once
 * @returns what those need that come into use, at any depth: it has to be as it was read when they do
 * @throws EtudeError FAILED_PRECONDITION
 */
export async function requireCallable(graph: CallGraph, moved: readonly MovedVersion[]): Promise<readonly Skill[]> {
  const view = behind(graph, moved);
  const needed: Skill[] = [];
  for (const { after } of moved.filter(comesIntoUse)) needed.push(...(await neededSkills(view, after)));
  const callersOf = callerLookup(view);
  for (const { after } of moved.filter(leaves)) await requireUncalled(after, callersOf);
  return needed;
}

/** Why it can't call what it was verified with; null where it can. */
export async function uncallableReason(graph: Pick<CallGraph, 'versions'>, skill: Skill): Promise<string | null> {
  try {
    await neededSkills(graph, skill);
    return null;
  } catch (error) {
    if (errorCode(error) !== 'FAILED_PRECONDITION' || !(error instanceof Error)) throw error;
    return error.message;
  }
}

export function comesIntoUse({ before, after }: Pick<MovedVersion, 'before' | 'after'>): boolean {
  return after.status !== before.status && IN_USE.has(after.status);
}

/** What is verified again as a candidate had no proof that is believed, so that whoever calls it can't run already. */
function leaves({ before, after, move }: MovedVersion): boolean {
  return CALLABLE.has(before.status) && after.status === 'archived' && move.proof !== null;
}

/** As it will be once they have moved. */
export function behind(graph: CallGraph, moved: readonly MovedVersion[]): CallGraph {
  const after = moved.map((one) => one.after);
  const asMoved = inTheirPlace(after);
  return { ...versionsBehind(graph, after), dependents: async (key, options) => asMoved(await graph.dependents(key, options)) };
}

/** @param moved as they will be */
export function versionsBehind(graph: Pick<CallGraph, 'versions'>, moved: readonly Skill[]): Pick<CallGraph, 'versions'> {
  const asMoved = inTheirPlace(moved);
  return {
    versions: async (owner, name, status) => {
      const versions = asMoved(await graph.versions(owner, name));
      return status === undefined ? versions : versions.filter((skill) => skill.status === status);
    },
  };
}

function inTheirPlace(moved: readonly Skill[]): (skills: readonly Skill[]) => readonly Skill[] {
  const after = new Map(moved.map((skill) => [versionKey(skill), skill]));
  return (skills) => skills.map((skill) => after.get(versionKey(skill)) ?? skill);
}

type CallerLookup = (skill: Skill) => Promise<readonly Skill[]>;

async function requireUncalled(skill: Skill, callersOf: CallerLookup): Promise<void> {
  const { named, foreign } = await callersInUse(skill, callersOf);
  const callers = [
    ...named,
    ...(foreign === 0 ? [] : [`${foreign} of single tenants, each of which sees its own in a review of ${skill.name}`]),
  ];
  if (callers.length === 0) return;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `skill "${skill.name}" is called by ${callers.join(', ')}; archive what calls it first, or store it without that call. A source that is not to be trusted is withdrawn with all that calls it by RevokeSource.`,
    { field: 'name' },
  );
}

/**
 * Who in use calls this version, and through what. A caller keeps the versions that it was verified with, so what lies between
 * is often deprecated; what is archived between them was in the way already. Of what everybody may call, callers of single tenants are
 * counted: who decides may be of another one.
 */
async function callersInUse(
  called: Skill,
  callersOf: CallerLookup,
): Promise<{ readonly named: readonly string[]; readonly foreign: number }> {
  const seen = new Set([versionKey(called)]);
  const named: string[] = [];
  let foreign = 0;
  let level = [{ skill: called, through: '' }];
  while (level.length > 0) {
    const next: typeof level = [];
    for (const { skill, through } of level) {
      for (const caller of await callersOf(skill)) {
        if (seen.has(versionKey(caller)) || GONE.has(caller.status)) continue;
        seen.add(versionKey(caller));
        if (IN_USE.has(caller.status) && caller.scope.tenant !== called.scope.tenant) foreign += 1;
        else if (IN_USE.has(caller.status)) named.push(`${calledText(caller)} (${caller.status}${through})`);
        else next.push({ skill: caller, through: `${through === '' ? ', through ' : `${through}, `}${caller.name}@${caller.version}` });
      }
    }
    level = next;
  }
  return { named, foreign };
}

const calledText = ({ name, version, scope }: Skill) => `${name}@${version} of "${scope.agent}"`;

/** Of a version; asked for once for all versions of a name. */
function callerLookup(graph: Pick<CallGraph, 'dependents'>): CallerLookup {
  const asked = new Map<string, Promise<readonly Skill[]>>();
  return async (skill) => {
    const name = versionKey({ ...skill, version: 0 });
    const callers = asked.get(name) ?? graph.dependents({ ...skill.scope, name: skill.name }, { all: true });
    asked.set(name, callers);
    return (await callers).filter((caller) => calledVersions(caller).includes(versionKey(skill)));
  };
}

type Named = SkillOwner & Pick<Skill, 'name'>;
type Pinned = Pick<SkillDependency, 'tenant' | 'agent' | 'user' | 'name' | 'version' | 'digest'>;
type Caller = Pick<Skill, 'scope' | 'dependencies'>;

/** Whether it may be of that skill. One without a user may be of any whom its caller reads. */
export function isPinOf(pin: SkillDependency, { name, scope }: Pick<Skill, 'name' | 'scope'>): boolean {
  const isOf = pin.name === name && pin.tenant === scope.tenant && pin.agent === scope.agent;
  return isOf && (pin.user === undefined || pin.user === scope.user);
}

/** Whether it may call a version of that owner's skill. */
export function mayCall({ scope, dependencies = [] }: Caller, { tenant, agent, user, name }: Named): boolean {
  return dependencies.some((pin) => {
    const users = pin.user === undefined ? [null, scope.user] : [pin.user];
    return pin.name === name && pin.tenant === tenant && pin.agent === agent && (user === undefined || users.includes(user));
  });
}

/**
 * The version that is pinned. One that was pinned before versions were counted for each user names no user: it is nobody's, or the
 * caller's own where that has the content and nobody's has not.
 *
 * @param versions of the name, of every user
 */
export function pinnedVersion(versions: readonly Skill[], pin: SkillDependency, caller: Pick<Skill, 'scope'>): Skill | undefined {
  const meant = versions.filter(({ version }) => version === pin.version);
  const of = (user: string | null) => meant.find(({ scope }) => scope.user === user);
  if (pin.user !== undefined) return of(pin.user);
  const [nobodys, own] = [of(null), of(caller.scope.user)];
  return [nobodys, own].find((version) => version?.digest === pin.digest) ?? nobodys ?? own;
}

/**
 * What is named in a skill's place is in use when it is named: so no chain of replacements leads back, since what is deprecated takes
 * nobody's place, and what comes into use again has nobody in its place.
 *
 * @param graph as it was before
 * @param moved made at once
 * @returns what is named: it has to be as it was read
 * @throws EtudeError ABORTED
 */
export async function requireReplacements(graph: CallGraph, moved: readonly MovedVersion[]): Promise<readonly Skill[]> {
  const view = behind(graph, moved);
  const found: Skill[] = [];
  for (const { before, after, move } of moved) {
    const { scope, name } = after;
    const { replacedBy } = move;
    const isKnown = before.status === 'deprecated' && before.replacedBy === replacedBy;
    if (replacedBy === undefined || replacedBy === null || isKnown) continue;
    const replacement = await findSkill(view, scope, replacedBy, { status: 'active' });
    if (replacement === null)
      throw new EtudeError(
        'ABORTED',
        `skill "${replacedBy}" is not in use, or not for everybody who reads "${name}", so it can't be used in its place; read both again and decide again`,
        { field: 'replaced_by' },
      );
    found.push(replacement);
  }
  return found;
}

/** More are not brought in for one skill. */
const NEEDED_MAX = 200;

type Calling = Pick<Skill, 'name' | 'scope' | 'dependencies'>;

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

const refusal = (message: string) => new EtudeError('FAILED_PRECONDITION', message);
const ownNameOf = ({ tenant, agent, user = null, name }: Named) => JSON.stringify([tenant, agent, user, name]);
const pinOf = (pin: Pinned) => JSON.stringify([pin.user ?? null, contentOf(pin)]);

/** What is brought in for a pin; of two owners' versions with one number and one content, either. */
export const contentOf = ({ tenant, agent, name, version, digest }: Omit<Pinned, 'user'>) =>
  JSON.stringify([tenant, agent, name, version, digest]);
