import { EtudeError, type ErrorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillChange } from '@etude/contracts/skill-proof';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { type Decision, moveOf, wasActive } from './skill-life.js';

/**
 * Activates an earlier version and deprecates the present one, both or none. The same decision again changes nothing.
 *
 * @param skill any version of the skill
 * @param decision.toVersion absent: the newest that was in use before the present one
 * @param decision.inUse the version that was in use when this was decided; absent: any
 * @throws EtudeError NOT_FOUND for an unknown version; FAILED_PRECONDITION for one that was never in use, is archived, or has no proof;
 *   ABORTED where another version than `inUse` is in use
 */
export async function rollbackSkill(
  procedural: SkillRegistry,
  skill: Skill,
  { toVersion, inUse, ...decision }: Decision & Meant,
): Promise<Skill> {
  const versions = await procedural.versions(skill.scope, skill.name);
  const done = versions.find(({ history = [] }) => history.some((change) => isOf(change, decision)));
  if (done !== undefined && done.status !== 'active') return done;
  const target = done ?? targetOf(versions, skill, { toVersion, inUse });
  const reason = `rolled back to version ${target.version}${decision.reason === '' ? '' : `: ${decision.reason}`}`;
  const others = versions.filter(({ status, version }) => status === 'active' && version !== target.version);
  const away = others.map((version) => moveOf(version, 'deprecated', { ...decision, reason }));
  const [active] = await procedural.move([moveOf(target, 'active', decision, { from: ['active', 'deprecated'] }), ...away]);
  return active ?? target;
}

interface Meant {
  readonly toVersion?: number | undefined;
  readonly inUse?: number | undefined;
}

const isOf = ({ to, by, at, reason }: SkillChange, decision: Decision) =>
  to === 'active' && by === decision.by && at === decision.at && reason === decision.reason;

function targetOf(versions: readonly Skill[], { name }: Skill, { toVersion, inUse }: Meant): Skill {
  const active = versions.find(({ status }) => status === 'active');
  if (inUse !== undefined && active !== undefined && active.version !== inUse) {
    const overtaken = `version ${active.version} of skill "${name}" is in use by now, not ${inUse} as when this was first asked for`;
    throw refusal('ABORTED', 'name', `${overtaken}; look at it, and ask again with a new request_id`);
  }
  const target = toVersion === undefined ? previousOf(versions, active, name) : versions.find(({ version }) => version === toVersion);
  if (target === undefined) throw refusal('NOT_FOUND', 'to_version', `Skill "${name}" has no version ${toVersion}.`);
  if (wasActive(target) && target.status !== 'archived') return target;
  const never = `version ${target.version} of skill "${name}" is ${target.status} and can't be rolled back to; only a version that was in use can`;
  throw refusal('FAILED_PRECONDITION', 'to_version', never);
}

/** The newest version that was in use before the present one. */
function previousOf(versions: readonly Skill[], active: Skill | undefined, name: string): Skill {
  const present = active ?? versions.find(wasActive);
  const earlier = versions.filter((one) => one.version < (present?.version ?? 0) && wasActive(one));
  const target = earlier.find(({ status }) => status === 'deprecated' || status === 'active');
  if (target !== undefined) return target;
  const why = `no earlier version of skill "${name}" was in use, or all of them are archived; name one with to_version, or restore one`;
  throw refusal('FAILED_PRECONDITION', 'to_version', why);
}

const refusal = (code: ErrorCode, field: string, message: string) => new EtudeError(code, message, { field });
