import type { Json } from '@etude/contracts/json';
import type { OutsideCaller, OutsideListing, OutsideOutcome } from '@etude/contracts/outside-tools';

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
