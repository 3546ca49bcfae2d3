import type { Skill } from '@etude/contracts/memory';
import type { SkillKey, SkillRegistry } from '../../ports/skill-registry.js';

/**
 * The version that a key names, as jobs keep it; null where there is none. A key without a user is nobody's; where their version of that
 * number has other content, it is the one with this content, which was stored before versions were counted for each user.
 */
export async function versionOfKey(
  registry: Pick<SkillRegistry, 'versions'>,
  { tenant, agent, user, name, version, digest }: SkillKey,
): Promise<Skill | null> {
  const owner = user === undefined ? { tenant, agent } : { tenant, agent, user };
  const known = (await registry.versions(owner, name)).filter((one) => one.version === version);
  return known.find((one) => one.digest === digest) ?? known[0] ?? null;
}
