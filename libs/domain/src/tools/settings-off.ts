import type { ToolContext } from './tool-definition.js';

/** What an agent whose procedural memory is off is told, with the way to turn it on. null: it is on. */
export function skillsAreOff({ agent, settings }: Pick<ToolContext, 'agent' | 'settings'>): string | null {
  if (settings.enabled) return null;
  return (
    `Procedural memory is off for agent "${agent}", so skills are not searched, used or registered. A reviewer turns it on with ` +
    `"etude agents set ${agent} enabled=true" (UpdateAgent with procedural_memory_settings.enabled = true). execute_code works without it.`
  );
}
