import type { Skill, SkillMember } from '@etude/contracts/memory';
import type { SkillMove, SkillVersions } from '../../ports/memory.js';
import { type Decision, isSameOwner, moveOf, nameOf } from './skill-life.js';

type Named = Pick<Skill, 'name' | 'version'>;

type Who = Pick<Decision, 'by' | 'at'>;

const MERGED = 'merged into ';

/** Whether a skill was merged earlier and then activated again by somebody. Such a skill isn't merged any more. */
export const wasBroughtBack = ({ history = [] }: Skill) => history.some(({ reason }) => reason.startsWith(MERGED));

/** The arguments with which the skill acts like the merged member that has the name `called`. Empty for the skill's own name. */
export function fixedFor({ name, members = [] }: Pick<Skill, 'name' | 'members'>, called: string): SkillMember['fixed'] {
  return called === name ? {} : (members.find(({ skill }) => skill?.name === called)?.fixed ?? {});
}

/** The skill, with the arguments of the member that solved this task. null if members have fixed arguments, but none of them solved the task. */
export function asMember<S extends Pick<Skill, 'code' | 'entryPoint' | 'members'>>(skill: S, fingerprint: string): S | null {
  const { members = [], entryPoint, code } = skill;
  if (members.every(({ fixed }) => Object.keys(fixed).length === 0)) return skill;
  const member = members.find(({ fingerprints }) => fingerprints.includes(fingerprint));
  if (member === undefined) return null;
  // A JSON string is also a Python string literal.
  const fixed = `__import__("json").loads(${JSON.stringify(JSON.stringify(member.fixed))})`;
  const wrapper = `def _member(*args, **given):\n    return ${entryPoint}(*args, **{**${fixed}, **given})`;
  return { ...skill, code: `${code}\n\n\n${wrapper}\n`, entryPoint: '_member' };
}

/** The moves that deprecate the members of a skill that comes into use. Members that somebody changed or brought back stay in use. */
export async function membersReplaced(procedural: SkillVersions, skill: Skill, { by, at }: Decision): Promise<readonly SkillMove[]> {
  const named = (skill.members ?? []).flatMap((member) => member.skill ?? []).filter(({ name }) => name !== skill.name);
  const found = await Promise.all(
    named.map(async ({ name, version }) => {
      const active = await procedural.versions(skill.scope, name, 'active');
      return active.filter((one) => one.version === version && !wasBroughtBack(one));
    }),
  );
  return found.flat().map((member) => mergeInto(skill, member, { by, at }));
}

/** The moves that bring a skill's members back when it goes out of use. Left out: members merged elsewhere, or with another active version. */
export async function membersBack(procedural: SkillVersions, skill: Skill, decision: Decision): Promise<readonly SkillMove[]> {
  const named = skill.status === 'active' ? (skill.members ?? []).flatMap((member) => member.skill ?? []) : [];
  const found = await Promise.all(named.map(({ name }) => procedural.versions(skill.scope, name)));
  const free = found.filter((versions) => versions.every(({ status }) => status !== 'active'));
  const merged = free.flat().filter(({ status, statusReason }) => status === 'deprecated' && statusReason === `${MERGED}${nameOf(skill)}`);
  return merged.map((member) => moveOf(member, 'active', decision));
}

function mergeInto(skill: Named, other: Skill, { by, at }: Who): SkillMove {
  return moveOf(other, 'deprecated', { by, at, reason: `${MERGED}${nameOf(skill)}` }, { replacedBy: skill.name });
}

/** The moves that merge `other` into an active skill. The skill gets the cues and fingerprints of `other` only if both have the same owner. */
export function mergeMoves(skill: Skill, other: Skill, who: Who): readonly SkillMove[] {
  const reason = `took over ${nameOf(other)}, which does the same`;
  const more = { from: ['active'], absorbs: other } as const;
  const taken = isSameOwner(skill.scope, other.scope) ? [moveOf(skill, 'active', { ...who, reason }, more)] : [];
  return [...taken, mergeInto(skill, other, who)];
}
