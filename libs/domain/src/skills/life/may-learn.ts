import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { SkillRegistry } from '../../ports/skill-registry.js';
import { needsRoom } from './skill-room.js';

/** @throws EtudeError FAILED_PRECONDITION where skills are switched off for the agent */
export function requireEnabled(agent: string, { enabled }: Pick<ProceduralMemorySettings, 'enabled'>): void {
  if (enabled) return;
  throw new EtudeError(
    'FAILED_PRECONDITION',
    `agent "${agent}" learns no skills: its setting procedural_memory_settings.enabled is false`,
    { field: 'enabled' },
  );
}

/**
 * Whether a skill may be registered that nobody asked for: as the agent's settings say, and while there is room for another one. A new
 * version of one that is there takes none. The store holds to the limit as well, since others may register meanwhile.
 *
 * @param planned others that will be registered before it
 */
export async function mayLearn(
  { name, scope }: Pick<Skill, 'name' | 'scope'>,
  { enabled, autoRegisterSkills, maxSkills }: ProceduralMemorySettings,
  registry: Pick<SkillRegistry, 'versions' | 'countNames'>,
  planned = 0,
): Promise<boolean> {
  if (!enabled || !autoRegisterSkills) return false;
  if (maxSkills === 0 || (await registry.countNames(scope, maxSkills)) + planned < maxSkills) return true;
  return !needsRoom(await registry.versions(scope, name));
}
