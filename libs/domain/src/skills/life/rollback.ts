import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillChange } from '@etude/contracts/skill-proof';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { type Decision, moveOf } from './approve.js';
import { wasActive } from './skill-life.js';

/**
 * An earlier version is used again and the present one is deprecated, both or none. The same decision again changes nothing.
 *
 * @param skill any version of it
 * @param decision.toVersion absent: the newest that was in use before the present one
 * @param decision.inUse the version that was in use when this was decided; absent: just now
 * @throws EtudeError NOT_FOUND, FAILED_PRECONDITION where there is none, or none with a proof for its content; ABORTED where another one
 *   than `inUse` is in use
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
  const others = versions.filter(({ status, version }) => status === 'active' && version !== target.version);
  const away = others.map((version) =>
    moveOf(version, { ...decision, to: 'deprecated', from: ['active'], reason: awayReason(decision, target) }),
  );
  const [active] = await procedural.move([moveOf(target, { ...decision, to: 'active', from: ['active', 'deprecated'] }), ...away]);
  return active ?? target;
}

interface Meant {
  readonly toVersion?: number | undefined;
  readonly inUse?: number | undefined;
}

function targetOf(versions: readonly Skill[], { name }: Skill, { toVersion, inUse }: Meant): Skill {
  const active = versions.find(({ status }) => status === 'active');
  if (inUse !== undefined && active !== undefined && active.version !== inUse) throw otherInUse(active, inUse);
  const present = active ?? versions.find(wasActive);
  const target =
    toVersion === undefined
      ? versions.find((version) => version.version < (present?.version ?? 0) && isOnceUsed(version))
      : versions.find(({ version }) => version === toVersion);
  if (target === undefined)
    throw noVersion(
      name,
      toVersion,
      versions.filter(({ version, status }) => status === 'archived' && version < (present?.version ?? Infinity)),
    );
  if (!wasActive(target) || target.status === 'archived')
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `version ${target.version} of skill "${name}" is ${target.status} and can't be rolled back to; only a version that was in use can`,
      { field: 'to_version' },
    );
  return target;
}

const otherInUse = ({ name, version }: Skill, meant: number) =>
  new EtudeError(
    'ABORTED',
    `version ${version} of skill "${name}" is in use by now, and not ${meant} as when this was asked for first; look at it, and ask again with a new request_id`,
    { field: 'name' },
  );
const isOf = ({ to, by, at, reason }: SkillChange, decision: Decision) =>
  to === 'active' && by === decision.by && at === decision.at && reason === decision.reason;
const isOnceUsed = (skill: Skill) => wasActive(skill) && (skill.status === 'deprecated' || skill.status === 'active');
const awayReason = ({ reason }: Decision, { version }: Skill) => `rolled back to version ${version}${reason === '' ? '' : `: ${reason}`}`;

function noVersion(name: string, version: number | undefined, archived: readonly Skill[]): EtudeError {
  if (version !== undefined) return new EtudeError('NOT_FOUND', `Skill "${name}" has no version ${version}.`, { field: 'to_version' });
  const once = archived.filter(wasActive).map((one) => one.version);
  const why =
    once.length === 0
      ? `no earlier version of skill "${name}" was in use; name one with to_version`
      : `earlier versions of skill "${name}" that were in use are archived (${once.join(', ')}); restore one of them first`;
  return new EtudeError('FAILED_PRECONDITION', why, { field: 'to_version' });
}
