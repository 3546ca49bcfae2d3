import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { type Decision, moveOf } from './approve.js';
import { wasActive } from './skill-life.js';

/**
 * An earlier version is used again and the present one is deprecated, both or none.
 *
 * @param skill any version of it
 * @param decision.toVersion absent: the newest that was in use before the present one
 * @throws EtudeError NOT_FOUND, FAILED_PRECONDITION where there is none, or none with a proof for its content
 */
export async function rollbackSkill(
  procedural: SkillRegistry,
  skill: Skill,
  { toVersion, ...decision }: Decision & { readonly toVersion?: number },
): Promise<Skill> {
  const versions = await procedural.versions(skill.scope, skill.name);
  const present = versions.find(({ status }) => status === 'active') ?? versions.find(wasActive);
  const target =
    toVersion === undefined
      ? versions.find((version) => version.version < (present?.version ?? 0) && isOnceUsed(version))
      : versions.find(({ version }) => version === toVersion);
  if (target === undefined)
    throw noVersion(
      skill.name,
      toVersion,
      versions.filter(({ version, status }) => status === 'archived' && version < (present?.version ?? Infinity)),
    );
  if (!wasActive(target) || target.status === 'archived')
    throw new EtudeError(
      'FAILED_PRECONDITION',
      `version ${target.version} of skill "${skill.name}" is ${target.status} and can't be rolled back to; only a version that was in use can`,
      { field: 'to_version' },
    );
  const inUse = versions.filter(({ status, version }) => status === 'active' && version !== target.version);
  const away = inUse.map((version) =>
    moveOf(version, { ...decision, to: 'deprecated', from: ['active'], reason: awayReason(decision, target) }),
  );
  const [active] = await procedural.move([moveOf(target, { ...decision, to: 'active', from: ['active', 'deprecated'] }), ...away]);
  return active ?? target;
}

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
