import type { Json } from '@etude/contracts/json';
import type { OutsideCaller, OutsideListing, OutsideOutcome, OutsideServer } from '@etude/contracts/outside-tools';
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

/**
 * Tools of MCP servers that an agent's settings name. Failures of servers are answers for the model. Not in it: which agent may use which
 * server.
 *
 * @throws the signal's reason, and nothing else
 */
export interface OutsideTools {
  list(caller: OutsideCaller, signal: AbortSignal): Promise<OutsideListing>;
  /** @param tool "server/tool" */
  call(caller: OutsideCaller, tool: string, args: Readonly<Record<string, Json>>, signal: AbortSignal): Promise<OutsideOutcome>;
}
