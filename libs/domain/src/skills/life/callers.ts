import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillMove, SkillRegistry } from '../../ports/skill-registry.js';
import { neededSkills } from '../use/bundle-code.js';
import { calledVersions, versionKey } from './every-skill.js';
import { CALLABLE, GONE, IN_USE } from './skill-status.js';

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
