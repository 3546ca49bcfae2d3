import type { Skill } from '@etude/contracts/memory';
import type { SkillMove, SkillOwner, SkillRegistry, SkillVersions } from '../../ports/memory.js';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { isReadBy } from './find-skill.js';
import { CALLABLE, GONE, IN_USE, isSameOwner } from './skill-life.js';
import { skillDigest } from '../content-digest.js';
import type { SkillDependency } from '@etude/contracts/skill-proof';

export const versionKey = ({ name, version, scope }: Pick<Skill, 'name' | 'version' | 'scope'>) =>
  `${scope.tenant} ${scope.agent} ${scope.user ?? ''} ${name}@${version}`;

export function calledVersions({ dependencies = [] }: Pick<Skill, 'dependencies'>): string[] {
  return dependencies.map(({ name, version, ...scope }) => versionKey({ name, version, scope }));
}

/** Orders callers before the versions that they call. When skills are archived in this order, no active skill loses a callee. */
export function callersFirst(skills: readonly Skill[]): Skill[] {
  const left = new Map(skills.map((skill) => [versionKey(skill), skill]));
  const ordered: Skill[] = [];
  while (left.size > 0) {
    const called = new Set([...left.values()].flatMap(calledVersions));
    const free = [...left].filter(([key]) => !called.has(key));
    // If no skill is free, the skills call each other in a circle. Verified skills never do this.
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
  readonly move: Pick<SkillMove, 'proof'>;
}

/** Requires that skills in use keep their callees. @param graph before the moves `moved`, made all at once @throws EtudeError FAILED_PRECONDITION */
export async function requireCallable(graph: CallGraph, moved: readonly MovedVersion[]): Promise<void> {
  const view = behind(graph, moved);
  for (const { before, after, move } of moved) {
    if (after.status !== before.status && IN_USE.has(after.status)) await neededSkills(view, after);
    // Callers of a skill without a proof can't run anyway.
    if (CALLABLE.has(before.status) && after.status === 'archived' && move.proof !== null) await requireUncalled(after, view);
  }
}

/** The message of a FAILED_PRECONDITION error. @throws any other error unchanged */
export function refusalOf(error: unknown): string {
  if (errorCode(error) !== 'FAILED_PRECONDITION' || !(error instanceof Error)) throw error;
  return error.message;
}

function behind(graph: CallGraph, moved: readonly MovedVersion[]): CallGraph {
  const byKey = new Map(moved.map(({ after }) => [versionKey(after), after]));
  const asMoved = (skills: readonly Skill[]) => skills.map((skill) => byKey.get(versionKey(skill)) ?? skill);
  return {
    versions: async (owner, name, status) =>
      asMoved(await graph.versions(owner, name)).filter((skill) => status === undefined || skill.status === status),
    dependents: async (key, options) => asMoved(await graph.dependents(key, options)),
  };
}

async function requireUncalled(called: Skill, graph: CallGraph): Promise<void> {
  const callers = await callersInUse(called, graph);
  if (callers.length === 0) return;
  const own = callers.filter(({ scope }) => scope.tenant === called.scope.tenant);
  const foreign = callers.length - own.length;
  const texts = own.map(({ name, version, scope, status }) => `${name}@${version} of "${scope.agent}" (${status})`);
  // Skills of other tenants are only counted, because the person who decides may not see them.
  if (foreign > 0) texts.push(`skills of other tenants (${foreign}; each tenant sees its own in a review of ${called.name})`);
  const message = `skill "${called.name}" is called by ${texts.join(', ')}; archive these callers first, or store them without the call. To withdraw a skill together with its callers, use RevokeSource.`;
  throw new EtudeError('FAILED_PRECONDITION', message, { field: 'name' });
}

/** The skills in use that call this version, directly or through callers out of use. Callers stay pinned to a version that goes out of use. */
async function callersInUse(called: Skill, graph: CallGraph): Promise<readonly Skill[]> {
  const found = new Map<string, Skill>();
  const open = [called];
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const key = versionKey(next);
    for (const caller of await graph.dependents({ ...next.scope, name: next.name }, { all: true })) {
      const isNew = calledVersions(caller).includes(key) && !GONE.has(caller.status) && !found.has(versionKey(caller));
      if (isNew) found.set(versionKey(caller), caller);
      if (isNew && !IN_USE.has(caller.status)) open.push(caller);
    }
  }
  return [...found.values()].filter(({ status }) => IN_USE.has(status));
}

export function isPinOf(pin: SkillDependency, { name, scope }: Pick<Skill, 'name' | 'scope'>): boolean {
  return pin.name === name && isSameOwner(pin, scope);
}

/** Whether a skill calls any version of this owner's skill. If `user` is absent, the called skill may belong to any user. */
export function mayCall(
  { dependencies = [] }: Pick<Skill, 'dependencies'>,
  { tenant, agent, user, name }: SkillOwner & Pick<Skill, 'name'>,
): boolean {
  return dependencies.some((pin) => isPinOf(pin, { name, scope: { tenant, agent, user: user === undefined ? pin.user : user } }));
}

const NEEDED_MAX = 200;

type Calling = Pick<Skill, 'name' | 'scope' | 'dependencies'>;

/**
 * All skills that this skill needs, directly or through others, in the pinned versions. Each skill comes after the skills that it needs.
 *
 * @param isProven whether a skill's proof is valid. If absent, proofs aren't checked
 * @throws EtudeError FAILED_PRECONDITION for a circle of calls, or too many skills. Also for a skill that is missing, out of use, changed, unproven,
 *   or unreadable for its caller, or that has nothing to call
 */
export async function neededSkills(
  registry: SkillVersions,
  skill: Calling,
  isProven: (skill: Skill) => boolean = () => true,
): Promise<readonly Skill[]> {
  const found = new Map<string, Skill>();
  const visit = async (caller: Calling, path: ReadonlyArray<Omit<SkillDependency, 'version' | 'digest'>>): Promise<void> => {
    for (const pin of caller.dependencies ?? []) {
      const from = path.findIndex((scope) => isPinOf(pin, { name: scope.name, scope }));
      const circle = [...path.slice(from), pin].map(({ name }) => name).join(' -> ');
      if (from >= 0) throw refusal(`skills call each other in a circle: ${circle}; remove one of these calls`);
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

/** Why other code can't call the skill. null if it can. */
export function nothingToCall({ kind, entryPoint }: Pick<Skill, 'kind' | 'entryPoint'>): string | null {
  if (kind === 'snippet') return 'is a snippet, whose code was never run; read it, and copy what you need';
  if (kind === 'procedure') return 'is a procedure in words; read it and do as it says';
  return entryPoint === null ? 'is a program without a function to call; use it instead' : null;
}

async function pinnedSkill(
  registry: SkillVersions,
  pin: SkillDependency,
  caller: Calling,
  isProven: (skill: Skill) => boolean,
): Promise<Skill> {
  const { name, version, digest } = pin;
  const refused = (why: string) => refusal(`${caller.name} needs ${name}@${version}, ${why}`);
  const anew = `register ${caller.name} again to pin the present versions`;
  if (!isReadBy(pin, caller.scope)) throw refused(`which some readers of ${caller.name} can't read; ${anew}`);
  const skill = (await registry.versions(pin, name)).find((one) => one.version === version);
  if (skill === undefined) throw refused(`which no longer exists; register a new version of ${caller.name} without this call`);
  const reason = skill.statusReason === '' ? '' : ` (${skill.statusReason})`;
  if (!CALLABLE.has(skill.status))
    throw refused(`which is ${skill.status}${reason}; restore it, or register a new version of ${caller.name}`);
  if (skill.digest !== digest || skillDigest(skill) !== digest) throw refused(`whose content has another digest; restore it, or ${anew}`);
  if (!isProven(skill)) throw refused(`which has no valid proof for its code; verify ${name} again`);
  const nothing = nothingToCall(skill);
  if (nothing !== null) throw refused(`which ${nothing}`);
  return skill;
}

const refusal = (message: string) => new EtudeError('FAILED_PRECONDITION', message);

export const contentOf = ({ tenant, agent, user, name, version, digest }: SkillDependency) =>
  JSON.stringify([tenant, agent, user, name, version, digest]);
