import type { Json } from '@etude/contracts/json';
import type { OutsideCaller, OutsideListing, OutsideOutcome, OutsideServer } from '@etude/contracts/outside-tools';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { TaskStrategy } from '@etude/contracts/task';

export interface AgentSettings {
  readonly agent: string;
  readonly settings: ProceduralMemorySettings;
  /** The strategy for tasks that name no strategy. */
  readonly strategy: TaskStrategy;
  readonly mcpServers: readonly OutsideServer[];
  /** Whether the agent has settings of its own. If not, these are the installation's defaults. */
  readonly isSet: boolean;
  /** Time of the last change, in ms since 1970. 0 if the agent has no settings of its own. */
  readonly updatedAt: number;
  readonly etag: string;
}

/** Reads the settings of an agent. The gateway decides who may change them. @throws EtudeError QUEUE_UNAVAILABLE */
export interface AgentSettingsReader {
  get(tenant: string, agent: string): Promise<AgentSettings>;
}

/**
 * Lists and calls the tools of MCP servers in an agent's settings. If a server fails, the failure is returned, for the model to read. This
 * port doesn't decide which agent may use which server.
 *
 * @throws only the signal's reason
 */
export interface OutsideTools {
  list(caller: OutsideCaller, signal: AbortSignal): Promise<OutsideListing>;
  /** @param tool "server/tool" */
  call(caller: OutsideCaller, tool: string, args: Readonly<Record<string, Json>>, signal: AbortSignal): Promise<OutsideOutcome>;
}
