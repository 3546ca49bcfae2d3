import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';

export interface AgentSettings {
  readonly agent: string;
  readonly settings: ProceduralMemorySettings;
  /** False: this agent has no settings of its own, and these are the installation's. */
  readonly isSet: boolean;
  /** ms since 1970; 0 if the agent has no settings of its own. */
  readonly updatedAt: number;
  /** Changes whenever the settings change. */
  readonly etag: string;
}

/** Reads the settings of an agent. Not in it: who may change them. @throws EtudeError QUEUE_UNAVAILABLE */
export interface AgentSettingsReader {
  get(tenant: string, agent: string): Promise<AgentSettings>;
}
