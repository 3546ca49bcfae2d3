import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';

/** Whether these are versions of one skill of one owner, of which at most one is in use. */
export function isVersionOf(a: Skill, b: Skill): boolean {
  const [one, other] = [a.scope, b.scope];
  return a.name === b.name && one.tenant === other.tenant && one.agent === other.agent && one.user === other.user;
}

/**
 * @param skill becomes active
 * @param versions of the same name, as they will be then
 * @throws EtudeError ABORTED where another version of the same owner stays active beside it
 */
export function requireOnlyActive(skill: Skill, versions: readonly Skill[]): void {
  const other = versions.find((version) => version.status === 'active' && version.version !== skill.version && isVersionOf(version, skill));
  if (other !== undefined) throw otherActive(skill, other);
}

export function otherActive({ name, version }: Skill, other: Skill): EtudeError {
  return new EtudeError(
    'ABORTED',
    `version ${other.version} of skill "${name}" became active meanwhile, so version ${version} did not; read it again and decide again`,
    { field: 'version', metadata: { active_version: String(other.version) } },
  );
}

/** Of several active versions, which only a store without transactions can have, the one that stays: the last that was taken into use. */
export function lastActivated(active: readonly Skill[]): Skill | undefined {
  return active.toSorted((a, b) => activatedAt(b) - activatedAt(a) || b.version - a.version)[0];
}

/** When it was taken into use last; ms since 1970. */
export function activatedAt({ history = [], version }: Skill): number {
  return history.findLast(({ from, to }) => to === 'active' && from !== 'active')?.at ?? version / Number.MAX_SAFE_INTEGER;
}
