import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';

export interface AgentSettings {
  readonly agent: string;
  readonly settings: ProceduralMemorySettings;
  /** False: nothing was set for this agent; these are the installation's. */
  readonly isSet: boolean;
  /** ms since 1970; 0 where nothing was set. */
  readonly updatedAt: number;
  /** Changes with every change. */
  readonly etag: string;
}

/** Settings by agent. Not in it: who may change them. @throws EtudeError QUEUE_UNAVAILABLE */
export interface AgentSettingsReader {
  get(tenant: string, agent: string): Promise<AgentSettings>;
}
