import type { OutsideServer } from '@etude/contracts/outside-tools';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { TaskStrategy } from '@etude/contracts/task';

export interface AgentSettings {
  readonly agent: string;
  readonly settings: ProceduralMemorySettings;
  /** The strategy of tasks that name none. */
  readonly strategy: TaskStrategy;
  /** MCP servers whose tools the agent may call. */
  readonly mcpServers: readonly OutsideServer[];
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
