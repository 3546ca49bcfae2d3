import type { Skill } from '@etude/contracts/memory';
import type { SkillDependency } from '@etude/contracts/skill-proof';
import type { SkillOwner } from '../../ports/skill-registry.js';

type Named = SkillOwner & Pick<Skill, 'name'>;
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
