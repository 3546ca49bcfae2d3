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

/** The versions that a skill's code calls. */
export function calledVersions({ dependencies = [] }: Pick<Skill, 'dependencies'>): string[] {
  return dependencies.map(pinKey);
}

const pinKey = ({ name, version, ...scope }: Pick<SkillDependency, 'name' | 'version' | 'tenant' | 'agent' | 'user'>) =>
  versionKey({ name, version, scope });

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
 * A skill that is in use, or waits for review, can call the versions that it was verified with. It gets that status only where all of them
 * exist, and none of them leaves meanwhile. A skill that is withdrawn with its proof leaves even where others call it.
 *
 * @param graph as it was before
 * @param moved made at once
 * @returns the skills that those coming into use need, at any depth: they must be unchanged when the moves are written
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

/** A callable skill leaves when it is archived and keeps its proof. Without the proof its callers can't run already. */
function leaves({ before, after, move }: MovedVersion): boolean {
  return CALLABLE.has(before.status) && after.status === 'archived' && move.proof !== null;
}

/** The graph as it will be once they have moved. */
function behind(graph: CallGraph, moved: readonly MovedVersion[]): CallGraph {
  const asMoved = inTheirPlace(moved.map((one) => one.after));
  return {
    versions: async (owner, name, status) => {
      const versions = asMoved(await graph.versions(owner, name));
      return status === undefined ? versions : versions.filter((skill) => skill.status === status);
    },
    dependents: async (key, options) => asMoved(await graph.dependents(key, options)),
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
 * The skills in use that call this version, and the path to each. Versions on the path are often deprecated, since a caller keeps the
 * versions that it was verified with. Callers of other tenants are only counted, since the decider may not see them.
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

/** Whether a pin is of a version of that skill. */
export function isPinOf(pin: SkillDependency, { name, scope }: Pick<Skill, 'name' | 'scope'>): boolean {
  return pin.name === name && pin.tenant === scope.tenant && pin.agent === scope.agent && pin.user === scope.user;
}

/** Whether it calls a version of that owner's skill; without a user, of any user's. */
export function mayCall(
  { dependencies = [] }: Pick<Skill, 'dependencies'>,
  { tenant, agent, user, name }: SkillOwner & Pick<Skill, 'name'>,
): boolean {
  return dependencies.some(
    (pin) => pin.name === name && pin.tenant === tenant && pin.agent === agent && (user === undefined || pin.user === user),
  );
}

/**
 * A replacement must be active when it is named. So no chain of replacements leads back: a deprecated skill replaces nobody, and a skill
 * that becomes active again loses its replacement.
 *
 * @param graph as it was before
 * @param moved made at once
 * @returns the replacements: they must be unchanged when the moves are written
 * @throws EtudeError NOT_FOUND
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
      throw new EtudeError('NOT_FOUND', `there is no active skill "${replacedBy}" that everybody who reads "${name}" can use`, {
        field: 'replaced_by',
      });
    found.push(replacement);
  }
  return found;
}

/** At most so many skills are loaded for one. */
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
  const visit = async (caller: Calling, path: ReadonlyArray<Omit<SkillDependency, 'version' | 'digest'>>): Promise<void> => {
    for (const pin of caller.dependencies ?? []) {
      refuseCircle(pin, path);
      if (found.has(contentOf(pin))) continue;
      if (found.size + path.length > NEEDED_MAX) throw refusal(`${skill.name} needs more than ${NEEDED_MAX} skills; make it need fewer`);
      const needed = await pinnedSkill(registry, pin, caller, isProven);
      await visit(needed, [...path, pin]);
      found.set(contentOf(pin), needed);
    }
  };
  await visit(skill, [{ ...skill.scope, name: skill.name }]);
  return [...found.values()];
}

/** Why other code can't call it; null where it can. */
export function nothingToCall({ kind, entryPoint }: Pick<Skill, 'kind' | 'entryPoint'>): string | null {
  if (kind === 'snippet') return 'is a snippet, whose code was never run; read it, and copy what you need';
  if (kind === 'procedure') return 'is a procedure in words; read it and do as it says';
  return entryPoint === null ? 'is a program without a function to call; use it instead' : null;
}

async function pinnedSkill(
  registry: Pick<SkillRegistry, 'versions'>,
  dependency: SkillDependency,
  caller: Calling,
  isProven: (skill: Skill) => boolean,
): Promise<Skill> {
  const { tenant, agent, user, name, version, digest } = dependency;
  if (tenant !== caller.scope.tenant && tenant !== GLOBAL_TENANT)
    throw refusal(`${caller.name} needs ${name} of another tenant; register ${caller.name} again, which pins what it may read`);
  const skill = (await registry.versions({ tenant, agent, user }, name)).find((one) => one.version === version);
  const what = `${caller.name} needs ${name}@${version}`;
  if (user !== null && user !== caller.scope.user)
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
  const nothing = nothingToCall(skill);
  if (nothing !== null) throw refusal(`${what}, which ${nothing}`);
  return skill;
}

function refuseCircle(pin: SkillDependency, path: ReadonlyArray<Omit<SkillDependency, 'version' | 'digest'>>): void {
  const from = path.findIndex((scope) => isPinOf(pin, { name: scope.name, scope }));
  if (from < 0) return;
  const circle = [...path.slice(from), pin].map(({ name }) => name).join(' -> ');
  throw refusal(`skills call each other in a circle: ${circle}; take one of these calls out`);
}

const refusal = (message: string) => new EtudeError('FAILED_PRECONDITION', message);

/** Tells apart what is brought in for pins. */
export const contentOf = ({ tenant, agent, user, name, version, digest }: SkillDependency) =>
  JSON.stringify([tenant, agent, user, name, version, digest]);
